"""docs/architecture.md is one page, and its table has every module of every crate."""

import re
from pathlib import Path

import pytest
from pages import ROOT

PAGE = ROOT / "docs/architecture.md"

# A line of the table: a crate, its modules, their content.
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)

# Files in a crate's src that the table leaves out: roots, unit tests of the crate, additional programs.
NO_MODULES = {"lib", "main", "tests", "bin"}


def listed() -> dict[str, list[str]]:
    """The modules that the table names, by crate."""
    found: dict[str, list[str]] = {}
    for crate, cell in ROW.findall(PAGE.read_text()):
        modules = re.findall(r"`(\w+)`", cell)
        assert modules, f"{crate}: a line without modules: {cell}"
        found.setdefault(crate, []).extend(modules)
    return found


def there(crate: Path) -> set[str]:
    """A crate's modules: the files and folders of Rust directly in its src."""
    entries = (crate / "src").iterdir()
    return {entry.stem for entry in entries if entry.is_dir() or entry.suffix == ".rs"} - NO_MODULES


CRATES = {folder.name: folder for folder in (ROOT / "crates").iterdir() if (folder / "src").is_dir()}


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_every_module_is_named(crate: str) -> None:
    assert sorted(there(CRATES[crate]) - set(listed().get(crate, []))) == []


@pytest.mark.parametrize("crate", sorted(listed()))
def test_every_module_that_is_named_exists(crate: str) -> None:
    assert crate in CRATES
    assert sorted(set(listed()[crate]) - there(CRATES[crate])) == []


def test_no_module_is_named_twice() -> None:
    assert [(crate, name) for crate, names in listed().items() for name in sorted(set(names)) if names.count(name) > 1] == []


def test_it_stays_one_page() -> None:
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 120
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2, "one diagram"
    assert len(re.findall(r"^\|---", text, re.MULTILINE)) == 1, "one table"
