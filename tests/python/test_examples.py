"""The examples run and write a picture."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.mark.parametrize("name, printed", [("digits", "relative error 0.2"), ("topics", "topic 8: ")])
def test_examples(name, printed, tmp_path):
    picture = tmp_path / f"{name}.png"
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", picture], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout and "Warning" not in done.stderr
    pixels = np.asarray(Image.open(picture).convert("L"))
    assert pixels.std() > 10, "the picture is empty"
