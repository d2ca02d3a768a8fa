"""A small experiment: its files, its page in headless Chromium, and that finished runs are kept."""

import pathlib

import pytest
from test_page import opened, overlaps

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERAL = """
title = "Errors <of> digits"
figure = "Fig. 0"
draws = "{draws}"
command = "factorize"
rank = 8
nodes = {nodes}
network = "1Gbit/s,100us"
limits = {{ steps = 10 }}
[[method]]
name = "DSANLS/S"
arguments = ["--algorithm", "dsanls", "--trace-every", "1"]
damped = true
[[method]]
name = "HALS"
arguments = ["--algorithm", "hals"]
[[panel]]
name = "DIGITS"
data = "digits.npy"
damping = {{ all = [0.1, 0.1] }}
[[panel]]
name = "ABSENT"
data = "absent.npy"
"""
SECURE = """
title = "Parties"
figure = "Fig. 0"
draws = "error-over-time"
command = "simulate"
rank = 4
nodes = [3]
limits = { time = 1.0, steps = 8 }
arguments = ["--aggregation", "plain"]
[[method]]
name = "Syn-SD"
arguments = ["--protocol", "syn-sd"]
[[panel]]
name = "DIGITS"
data = "digits.npy"
"""


@pytest.fixture(scope="module")
def experiment(partwise, tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")

    def run(name, text, *arguments, code=0):
        (folder / f"{name}.toml").write_text(text)
        said = partwise("experiment", folder / f"{name}.toml", "--data", ROOT / "data", "--out", folder / name, *arguments, code=code)
        return folder / name, said

    return run


@pytest.mark.parametrize("scale", [False, True])
def test_a_figure_in_the_browser(browser, experiment, scale):
    draws, nodes = ("speed-over-nodes", "[2, 4]") if scale else ("error-over-time", "[4]")
    folder, said = experiment(draws, GENERAL.format(draws=draws, nodes=nodes))
    assert "skipping ABSENT" in said and "DIGITS, DSANLS/S" in said
    count = 4 if scale else 2
    assert len((folder / "runs.csv").read_text().splitlines()) == 1 + count
    assert (folder / "digits.svg").stat().st_size < 20_000
    assert not list(folder.glob("runs/*/U.npy"))
    for width in [360, 1400]:
        with opened(browser, folder / "index.html", width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.said == [] and len([url for url in page.asked if not url.startswith("data:")]) == 1
            text = page.locator("body").inner_text()
            assert "Errors <of> digits" in text and "the clock is virtual" in text
            assert page.locator("svg[role=img]").get_attribute("aria-label").startswith("Errors <of> digits, DIGITS.")
            assert page.locator("svg title").count() >= count
            assert overlaps(page, "svg") == []
            assert all(len(label) <= 8 for label in page.locator("svg .tick").all_text_contents())
            # Points are there for the pointer alone, unless they are what is drawn.
            assert set(page.evaluate("[...document.querySelectorAll('circle')].map(point => getComputedStyle(point).stroke)")) == {"none"}
    with opened(browser, folder / "digits.svg") as page:
        assert page.said == []
    # Again: everything is kept, and the figures are the same.
    before = (folder / "digits.svg").read_bytes()
    _, said = experiment(draws, GENERAL.format(draws=draws, nodes=nodes))
    assert said.count("kept") == count and (folder / "digits.svg").read_bytes() == before
    # Something else is asked for: it runs again.
    _, said = experiment(draws, GENERAL.format(draws=draws, nodes=nodes).replace("rank = 8", "rank = 6"), "--quick")
    assert "kept" not in said


def test_parties_and_their_time(experiment):
    folder, said = experiment("secure", SECURE)
    line = (folder / "runs.csv").read_text().splitlines()[1].split(",")
    assert line[4] == "simulated" and 2 <= int(line[5]) <= 8


def test_search_tries_all(experiment):
    text = GENERAL.format(draws="error-over-time", nodes="[2]").replace("steps = 10", "steps = 3")
    folder, said = experiment("search", text, "--search", "--quiet")
    assert len((folder / "search.csv").read_text().splitlines()) == 10


def test_what_is_wrong_is_said(partwise, experiment, tmp_path):
    text = GENERAL.format(draws="error-over-time", nodes="[2]")
    _, said = experiment("wrong", text.replace("rank", "rang"), code=2)
    assert "wrong.toml: line 6: unknown field `rang`" in said
    _, said = experiment("failing", text.replace('"hals"', '"halz"'), code=2)
    assert "DIGITS, HALS, 2 nodes" in said and "finished runs are kept" in said
    _, said = experiment("only", text, "--only", "NONE", code=2)
    assert "has no panel NONE; it has DIGITS, ABSENT" in said
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    (tmp_path / "e.toml").write_text(text)
    said = partwise("experiment", tmp_path / "e.toml", "--data", ROOT / "data", "--out", tmp_path / "full", code=2)
    assert "is not the folder of an experiment" in said
    said = partwise("experiment", tmp_path / "e.toml", "--data", tmp_path, "--out", tmp_path / "new", code=2)
    assert "none of the matrices is in" in said
