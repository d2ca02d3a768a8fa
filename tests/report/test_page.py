"""Every kind of page in headless Chromium: content, silence, no requests, light and dark, narrow and wide.

Screenshots go to the folder PARTWISE_SCREENSHOTS, if it is set: look at them after a change.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest
from conftest import EVIL

KINDS = ["pictures", "film", "terms", "curves", "parties", "audited"]
SECURE = ["parties", "audited"]


@contextlib.contextmanager
def opened(browser, file, width=1400, scheme="light"):
    """The page, with its console messages and requests."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    # The machine may be busy.
    context.set_default_timeout(300_000)
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(file.as_uri())
    yield page
    context.close()


def unfold(page):
    """Opens all collapsed sections."""
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")


def rows_of(page, summary):
    """The cells of the table under a summary, row by row."""
    unfold(page)
    table = page.locator(f"details:has(summary:text-is('{summary}')) tbody tr")
    return [row.locator("td").all_inner_texts() for row in table.all()]


def overlaps(page, selector):
    """Pairs of visible texts whose boxes overlap, within each chart."""
    return page.evaluate(
        """selector => [...document.querySelectorAll(selector)].flatMap(chart => {
            const texts = [...chart.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
            return texts.flatMap(([one, a], index) => texts.slice(index + 1)
                .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                .map(([other]) => [one, other]));
        })""",
        selector,
    )


def page_of(runs, kind):
    return runs[kind] / "report.html"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_fits_and_asks_for_nothing(browser, runs, kind, scheme, width):
    with opened(browser, page_of(runs, kind), width, scheme) as page:
        unfold(page)
        # Wide enough for its content, which scrolls within itself where it must.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        beyond = page.evaluate(
            "[...document.querySelectorAll('main *:not(.scroll *):not(.unseen)')].filter(part => {"
            "const box = part.getBoundingClientRect();"
            "return box.width > 0 && box.right > innerWidth + 1}).map(part => part.outerHTML.slice(0, 80))"
        )
        assert beyond == []
        assert [url for url in page.asked if not url.startswith("data:")] == [page_of(runs, kind).as_uri()]
        assert page.said == []
        # Text must stand out from its background.
        colours = page.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
        ink, paper = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
        assert (ink < 200 and paper > 600) if scheme == "light" else (ink > 600 and paper < 200)
        if folder := os.environ.get("PARTWISE_SCREENSHOTS"):
            for details in page.query_selector_all("details"):
                details.evaluate("details => details.open = false")
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{folder}/{kind}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("kind", KINDS)
def test_says_what_was_run(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        headings = page.locator("h2").all_inner_texts()
        expected = ["Components", "Samples", "Convergence and cost", "Settings"]
        expected += ["Originals and reconstructions"] if kind in ("pictures", "film") else []
        expected += ["Who saw what"] if kind in SECURE else []
        assert sorted(headings) == sorted(expected)
        tiles = page.locator(".tiles").inner_text()
        assert "relative error" in tiles and ("round" in tiles if kind in SECURE else "iteration" in tiles)
        text = page.locator("main").inner_text()
        assert "Relative error over time" in text and ("Seconds by phase" in text or kind in SECURE)
        assert ("Bytes sent" in text) == (kind in ("terms", *SECURE))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [360, 1400])
def test_labels_of_charts_are_short_and_apart(browser, runs, kind, width):
    with opened(browser, page_of(runs, kind), width) as page:
        labels = page.locator("svg .tick").all_text_contents()
        assert len(labels) > 3 and all(len(label) <= 8 for label in labels), labels
        assert overlaps(page, "svg.lines") == []
        cut = page.evaluate(
            "[...document.querySelectorAll('.term, .marks span, .stack span')].filter(part => part.scrollWidth > part.clientWidth + 1"
            " && part.clientWidth > 0 && getComputedStyle(part).display != 'inline').map(part => part.textContent)"
        )
        assert cut == []


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_error_curve_and_it_tells_iterations(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        assert page.locator("svg.lines").count() == 1
        chart = page.locator("svg.lines")
        tips = chart.evaluate("chart => [...chart.querySelectorAll('circle')].map(point => point.dataset.tip)")
        lines = (runs[kind] / "trace.csv").read_text().splitlines()[1:]
        trace = {int(float(line.split(",")[0])): float(line.split(",")[2]) for line in lines}
        step = "round" if kind in SECURE else "iteration"
        for tip in tips:
            name, error = re.fullmatch(rf"{step} ([\d,]+): relative error ([\d.]+) after .+", tip).groups()
            assert trace[int(name.replace(",", ""))] == pytest.approx(float(error), abs=1e-6)
        assert len(tips) > 1
        heights = chart.evaluate("chart => [...chart.querySelectorAll('circle')].map(point => +point.getAttribute('cy'))")
        errors = [float(re.search(r"error ([\d.]+)", tip)[1]) for tip in tips]
        assert min(errors) > min(trace.values()) and heights[errors.index(max(errors))] == min(heights)
        assert "excess over the best, " in page.locator(".curve figcaption").inner_text()


@pytest.mark.parametrize("kind", KINDS)
def test_components_are_numbered_in_order(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        names = [int(heading.split()[0]) for heading in page.locator(".cards h3").all_inner_texts()]
        assert names == sorted(names)
        listed = [int(name) for name, *_ in rows_of(page, "Components as a table")]
        assert listed == list(range(1, len(listed) + 1)) and set(names) <= set(listed)
        text = page.locator("section:has(h2:text-is('Components')) > p").inner_text()
        assert "share of the energy: ‖Uj‖ ‖Vj‖ divided by its sum over all components" in text


@pytest.mark.parametrize("kind", ["pictures", "film", "terms", "parties"])
def test_leading_components_are_those_of_the_written_files(browser, runs, kind):
    folder = runs[kind]
    side = "V" if kind == "film" else "U"  # A frame is a column.
    files = sorted(folder.glob(f"party-*/{side}.npy")) or [folder / f"{side}.npy"]
    weights = np.concatenate([np.load(file) for file in files])
    other = "U" if side == "V" else "V"
    features = np.load(next(iter(folder.glob(f"party-1/{other}.npy")), folder / f"{other}.npy"))

    def leads(factor):
        return np.bincount(factor.argmax(1)[factor.any(1)], minlength=factor.shape[1]).tolist()

    with opened(browser, page_of(runs, kind)) as page:
        assert f"{side}.argmax(1)" in page.locator("main").inner_text()
        rows = rows_of(page, "Components as a table")
        assert [int(row[2].replace(",", "")) for row in rows] == leads(weights)
        assert [int(row[3].replace(",", "")) for row in rows] == leads(features)


@pytest.mark.parametrize("kind", KINDS)
def test_strongest_samples_are_in_the_order_of_the_numbers_shown(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        rows = rows_of(page, "Strongest samples as a table")
        shown = [[float(number.replace(",", "")) for number in re.findall(r"\(([^()]+)\)", row[1])] for row in rows]
        assert all(numbers == sorted(numbers, reverse=True) for numbers in shown)
        assert any(len(numbers) == 5 for numbers in shown)


def test_warnings_are_prominent(browser, partwise, runs, tmp_path):
    folder = shutil.copytree(runs["terms"], tmp_path / "r")
    record = json.loads((folder / "run.json").read_text())
    record["warnings"] = ["column 3 holds 99.9% of the <b>sum</b> of squares"]
    (folder / "run.json").write_text(json.dumps(record))
    partwise("report", folder)
    with opened(browser, folder / "report.html") as page:
        assert page.locator(".warnings li").all_inner_texts() == record["warnings"]
        box = page.locator(".warnings").bounding_box()
        assert box["y"] + box["height"] < page.locator(".tiles").bounding_box()["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_charts_have_text_alternatives_and_values(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        assert page.locator("svg:not([role=img])").count() == 0
        labels = page.evaluate("[...document.querySelectorAll('[role=img]')].map(part => part.getAttribute('aria-label'))")
        assert labels and all(len(label) > 15 for label in labels)
        assert all(page.evaluate("[...document.images].map(image => image.alt.length > 5 && image.naturalWidth > 0)"))
        # Each kind of chart answers to the pointer.
        shown = []
        for selector in ["svg.lines", "svg.area", ".heat img", ".stack .bar i", ".ranking li"]:
            # The widest: a phase may be too short to point at.
            widest = "all => all.sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0]"
            chart = page.evaluate_handle(f"({widest})([...document.querySelectorAll('{selector}')])").as_element()
            if chart:
                chart.scroll_into_view_if_needed()
                chart.hover()
                assert page.locator(".tip").is_visible(), selector
                shown.append(page.locator(".tip").inner_text())
        assert len(shown) >= 4 and all(any(letter.isdigit() for letter in text) for text in shown), shown


def test_components_are_what_they_should_be(browser, runs):
    with opened(browser, page_of(runs, "pictures")) as page:
        assert page.locator(".pictures article img.part").count() == 16
        assert page.locator(".frames figure img").count() == 12
        assert page.locator(".three span").all_inner_texts()[:3] == ["original", "reconstruction", "difference"]
    with opened(browser, page_of(runs, "film")) as page:
        size = page.locator(".pictures img").first.evaluate("image => [image.naturalWidth, image.naturalHeight]")
        assert size == [40, 30]
        assert page.locator(".three span").all_inner_texts()[:3] == ["original", "background", "foreground"]
    with opened(browser, page_of(runs, "terms")) as page:
        assert page.locator(".terms article").count() == 3
        # Each topic's card holds the words of one topic.
        for card in page.locator(".ranking").all():
            names = card.locator(".term").all_inner_texts()
            topics = {"heart" if name == EVIL[:59] + "…" or name == EVIL else name.split("-")[0] for name in names[:5]}
            assert len(topics) == 1, names
    with opened(browser, page_of(runs, "curves")) as page:
        assert page.locator(".curves article").count() == 60
        assert "The 60 strongest of 70 components" in page.locator("main").inner_text()
    with opened(browser, page_of(runs, "parties")) as page:
        text = page.locator("main").inner_text()
        assert "party 3" in text and "as part of a sum over all parties" in text and "not audited" in text


def test_an_audit_is_told_in_words_and_numbers(browser, runs):
    """The page of an audited run shows all of audit.json."""
    audit = json.loads((runs["audited"] / "audit.json").read_text())
    with opened(browser, page_of(runs, "audited")) as page:
        assert "not audited" not in page.locator("main").inner_text()
        assert page.locator("h3:has-text('Audit') + ul > li").all_inner_texts() == audit["verdict"]
        tables = {table.locator("th").all_inner_texts()[0]: table for table in page.locator("table").all()}
        unfold(page)
        rows = [row.locator("td").all_inner_texts() for row in tables["attack"].locator("tr:has(td)").all()]
        assert [row[0] for row in rows] == [finding["attack"] for finding in audit["findings"]]
        areas = [float(row[3].split()[0]) for row in rows]
        assert areas == pytest.approx([finding["auc"] for finding in audit["findings"]], abs=1e-3)
        text = page.locator("main").inner_text()
        assert "What left each party, and who could read it" in text and "all others together" in text
        assert all(left["kind"] in text for left in audit["left"])


def test_the_foreground_is_what_moves(browser, runs):
    """The difference is brighter at the square than where nothing moves."""
    with opened(browser, page_of(runs, "film")) as page:
        left = page.locator(".three div:nth-child(3) img").first
        levels = left.evaluate(
            "image => { const canvas = document.createElement('canvas'); canvas.width = 40; canvas.height = 30;"
            "const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);"
            "return [...context.getImageData(0, 0, 40, 30).data] }"
        )
        lines = [sum(levels[4 * 40 * line : 4 * 40 * (line + 1)][0::4]) for line in range(30)]
        assert max(lines[18:24]) > 4 * max(lines[:15])


def test_samples_are_sorted_by_their_leading_component(browser, runs):
    with opened(browser, page_of(runs, "terms")) as page:
        heat = page.locator("figure.wide .heat").first.evaluate(
            "heat => ({width: +heat.dataset.width, levels: [...atob(heat.dataset.levels)].map(c => c.charCodeAt(0))})"
        )
        lines = [heat["levels"][line * heat["width"] : (line + 1) * heat["width"]] for line in range(3)]
        leaders = [max(range(3), key=lambda line: lines[line][column]) for column in range(heat["width"])]
        assert heat["width"] == 60 and leaders == sorted(leaders) and set(leaders) == {0, 1, 2}


@pytest.mark.parametrize("kind", ["terms", *SECURE])
def test_names_stay_names(browser, runs, kind):
    with opened(browser, page_of(runs, kind)) as page:
        assert "Partwise" in page.title()
        assert page.locator("img[src=x]").count() == 0
        shown = page.locator(".term").all_inner_texts()
        assert any(name.startswith('"><img src=x onerror') for name in shown)


def test_prints(browser, runs, tmp_path):
    with opened(browser, page_of(runs, "terms")) as page:
        page.pdf(path=tmp_path / "page.pdf")
        page.emulate_media(media="print")
        assert page.locator("details:visible").count() == 0
    assert (tmp_path / "page.pdf").stat().st_size > 10_000


def test_pages_are_small(runs):
    for kind, folder in runs.items():
        assert (folder / "report.html").stat().st_size < 1_200_000, kind


def test_regenerated_it_is_the_same(partwise, runs):
    for folder in runs.values():
        page = folder / "report.html"
        before = page.read_bytes()
        page.unlink()
        partwise("report", folder)
        assert page.read_bytes() == before
        partwise("report", folder)


def test_what_is_not_ours_is_kept(partwise, runs):
    page = runs["curves"] / "report.html"
    before = page.read_bytes()
    page.write_text("<p>my notes</p>")
    said = partwise("report", runs["curves"], code=2)
    assert "report.html was not written by Partwise" in said and page.read_text() == "<p>my notes</p>"
    partwise("report", runs["curves"], "--force")
    assert page.read_bytes() == before


def test_other_views(browser, partwise, runs, tmp_path):
    partwise("factorize", page_of(runs, "film").parent.parent / "frames", "--rank", 2, "--out", tmp_path / "r", "--quiet")
    partwise("report", tmp_path / "r", "--records", "rows")
    with opened(browser, tmp_path / "r/report.html") as page:
        assert page.locator(".terms article").count() == 2  # The frames' names.
    said = partwise("report", tmp_path / "r", "--image-shape", "7x7", code=2)
    assert "--image-shape: 7 x 7 x 1 gives 49 values" in said and "has 3600" in said


def test_the_browser_is_asked_to_open_it(partwise, runs, tmp_path, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("xdg-open is Linux's")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = partwise("report", runs["curves"], "--open", code=2)
    assert "`xdg-open` found no browser" in said and "report.html yourself" in said
    browser = tmp_path / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/asked\n')
    browser.chmod(0o755)
    partwise("report", runs["curves"], "--open")
    assert (tmp_path / "asked").read_text().strip() == str(runs["curves"] / "report.html")


def test_bad_folders(partwise, tmp_path):
    assert "is not a folder" in partwise("report", tmp_path / "none", code=2)
    assert "has no U.npy" in partwise("report", tmp_path, code=2)
    (tmp_path / "run.json").write_text("{")
    assert "run.json: not the record of a run" in partwise("report", tmp_path, code=2)
    (tmp_path / "run.json").write_text('{"parties": []}')
    assert "has no party-1" in partwise("report", tmp_path, code=2)
    (tmp_path / "run.json").unlink()
    (tmp_path / "trace.csv").write_text("iteration,seconds,relative_error\n1,2\n")
    assert "trace.csv, line 2: not a line of an error curve" in partwise("report", tmp_path, code=2)


def test_a_folder_in_its_place_is_said_before_any_work(partwise, tmp_path):
    table = tmp_path / "m.csv"
    table.write_text("1,2\n3,4\n")
    (tmp_path / "r/report.html").mkdir(parents=True)
    said = partwise("factorize", table, "--rank", 1, "--out", tmp_path / "r", "--force", code=2)
    assert "report.html is a folder, which is not replaced" in said
    assert not (tmp_path / "r/U.npy").exists()
