"""Runs for the tests of pages, and the browser."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names are input: nothing in them may become markup.
EVIL = '"><img src=x onerror="document.title=1"></script><script>document.title=2</script>|\''


@pytest.fixture(scope="session")
def partwise():
    program = os.environ.get("PARTWISE_BIN", str(ROOT / "target/release/partwise"))

    def run(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def film(folder):
    """A bright square that moves over a background of two colours."""
    folder.mkdir()
    for number in range(12):
        pixels = np.zeros((30, 40, 3), np.uint8)
        pixels[:15], pixels[15:] = (120, 160, 220), (60, 110, 70)
        pixels[18:24, 3 * number : 3 * number + 5] = (250, 240, 90)
        Image.fromarray(pixels).save(folder / f"frame-{number:02}.png")
    return folder


def terms(file):
    """Documents of three topics, with names for both sides, some of which would be markup."""
    generator = np.random.default_rng(0)
    words = [f"{topic}-{number}" for topic in ("heart", "lung", "skin") for number in range(12)]
    words[0] = EVIL
    lines = ["," + ",".join('"' + word.replace('"', '""') + '"' for word in words)]
    for record in range(60):
        weights = generator.random(36) * 0.1
        weights[12 * (record % 3) : 12 * (record % 3) + 12] += generator.random(12)
        lines.append(f"patient {record}," + ",".join(f"{weight:.3f}" for weight in weights))
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="session")
def runs(partwise, tmp_path_factory):
    """A folder of each kind of run, by name."""
    folder = tmp_path_factory.mktemp("runs")
    digits = ROOT / "data/digits.npy"
    table = terms(folder / "terms.csv")
    np.save(folder / "curves.npy", np.abs(np.random.default_rng(1).normal(size=(300, 700))).cumsum(axis=1))

    def run(name, *arguments):
        partwise(*arguments, "--out", folder / name, "--quiet")
        return folder / name

    return {
        "pictures": run("pictures", "factorize", digits, "--rank", 16, "--image-shape", "8x8"),
        "film": run("film", "factorize", film(folder / "frames"), "--rank", 2, "--iterations", 40),
        "terms": run("terms", "factorize", table, "--rank", 3, "--algorithm", "dsanls", "--nodes", 3, "--iterations", 50),
        "curves": run("curves", "factorize", folder / "curves.npy", "--rank", 70, "--iterations", 5, "--restarts", 2),
        "audited": run(
            "audited", "simulate", table, "--parties", 3, "--protocol", "syn-sd", "--rank", 3, "--rounds", 20, "--audit"
        ),
        "parties": run("parties", "simulate", table, "--parties", 3, "--protocol", "syn-sd", "--rank", 3, "--rounds", 20),
    }


@pytest.fixture(scope="session")
def browser():
    names = ["chromium", "chromium-browser", "google-chrome", "chrome"]
    program = os.environ.get("PARTWISE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert program, "no Chromium on the PATH: install chromium, or set PARTWISE_CHROMIUM"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()
