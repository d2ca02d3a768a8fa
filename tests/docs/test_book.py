"""The guide is a book: docs/SUMMARY.md lists every page once, and `mdbook build` makes pages whose links all lead somewhere."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from pages import ROOT, links, pages

BOOK = ROOT / "docs"
SUMMARY = BOOK / "SUMMARY.md"
MOST_WORDS = 35_500

MDBOOK = shutil.which("mdbook", path=str(Path(sys.executable).parent)) or shutil.which("mdbook")


def listed() -> list[Path]:
    return [(BOOK / link).resolve() for _, link in links(SUMMARY.read_text())]


def test_the_summary_lists_every_page_once() -> None:
    there = sorted(page for page in BOOK.rglob("*.md") if page != SUMMARY)
    assert sorted(listed()) == there


def test_guide_and_readme_stay_short() -> None:
    """Words as `wc -w` counts them, tables included."""
    words = sum(len(page.read_text().split()) for page in [ROOT / "README.md", *BOOK.rglob("*.md")])
    assert words <= MOST_WORDS
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_every_picture_is_shown_and_small() -> None:
    """Pictures and charts that no page shows are left over; large ones make the pages slow."""
    shown = {(page.parent / link).resolve() for page in pages() for _, link in links(page.read_text())}
    pictures = [file for ending in ("svg", "png", "webp") for file in BOOK.rglob(f"*.{ending}")]
    assert [file for file in pictures if file not in shown] == []
    assert [file for file in pictures if file.stat().st_size > 150_000] == []


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


@pytest.mark.skipif(MDBOOK is None, reason="mdbook is not installed")
def test_the_book_builds_and_its_links_resolve(tmp_path: Path) -> None:
    subprocess.run([MDBOOK, "build", "--dest-dir", str(tmp_path), str(BOOK)], check=True, capture_output=True, text=True)
    built = {file: Page(file) for file in tmp_path.rglob("*.html")}
    assert len(built) > len(listed())
    wrong = []
    for file, page in built.items():
        if file.name in ("404.html", "print.html", "toc.html"):
            continue
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.exists() or (anchor and target in built and unquote(anchor) not in built[target].anchors):
                wrong.append((file.relative_to(tmp_path).as_posix(), link))
    assert wrong == []
