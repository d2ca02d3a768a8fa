"""The paths of the program and the real data, which the environment can set."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def partwise():
    """Runs the program and returns what it prints; a failure is the test's failure."""
    program = os.environ.get("PARTWISE_BIN", str(ROOT / "target/release/partwise"))

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def factorize(partwise, tmp_path):
    """Factorizes a file, by HALS unless told otherwise, and returns U, V and the record of the run."""

    def run(file, *arguments):
        out = tmp_path / "out"
        if "--algorithm" not in arguments:
            arguments += ("--algorithm", "hals")
        partwise("factorize", file, "--out", out, "--force", "--quiet", *arguments)
        record = json.loads((out / "run.json").read_text())
        return np.load(out / "U.npy"), np.load(out / "V.npy"), record

    return run


@pytest.fixture(scope="session")
def data():
    """The path of a real matrix; the test is skipped where it is absent."""
    folder = pathlib.Path(os.environ.get("PARTWISE_DATA", ROOT.parent / "shared/data"))

    def path(name):
        if not (folder / name).exists():
            pytest.skip(f"no {name} in {folder}")
        return folder / name

    return path
