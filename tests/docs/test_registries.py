"""Tables of the docs name the variants of the registries in the Rust code, all of them and in the same order.

A registry is a macro call such as `methods! { ... }` with one line for each variant.
"""

import re
from dataclasses import dataclass

import pytest
from pages import ROOT

SOURCES = sorted((ROOT / "crates").glob("*/src/**/*.rs"))

# `Variant = "name", ...;`, which the macro `registry!` reads too.
NAMED = r'^(?P<variant>\w+) = "(?P<name>[\w-]+)",'
# A line of documentation and `Variant in name;`.
IN_FILE = r"^(?P<variant>\w+) in (?P<name>\w+);"
# A line of documentation and `Variant, "name", Definition;`.
LISTED = r'^(?P<variant>\w+), "(?P<name>[\w-]+)",'
# A line of documentation that ends in file endings, and `Variant in module;`.
ENDINGS = r"^/// (?P<name>[^\n]+)\n\s*(?:#\[cfg\([^\n]*\)\] )?(?P<variant>\w+) in \w+;"


@dataclass
class Registry:
    """A macro, how its lines look, and the table that lists its variants: a page and the first cell of its head."""

    macro: str
    line: str
    page: str
    head: str

    def variants(self) -> list[str]:
        """The names in the code, without those that exist under test alone."""
        calls = [
            call.group(1)
            for source in SOURCES
            for call in re.finditer(rf"^{self.macro}! \{{\n(.*?)^\}}", source.read_text(), re.MULTILINE | re.DOTALL)
        ]
        assert len(calls) == 1, f"{self.macro}! is called {len(calls)} times"
        lines = "\n".join(line.strip() for line in calls[0].splitlines())
        for_tests = re.compile(r"^#\[cfg\(test\)\][^;]*;", re.MULTILINE)
        return [found.group("name") for found in re.finditer(self.line, for_tests.sub("", lines), re.MULTILINE)]

    def rows(self) -> list[str]:
        """The first cells of the table's rows."""
        text = (ROOT / self.page).read_text()
        tables = re.findall(rf"^\| {re.escape(self.head)} \|[^\n]*\n\|---[^\n]*\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)
        assert len(tables) == 1, f"{self.page}: {len(tables)} tables of {self.head}"
        return [row.split("|")[1].strip() for row in tables[0].splitlines()]

    def named(self) -> list[str]:
        """The names in the table; a row may have several."""
        return [name for row in self.rows() for name in re.findall(r"`([^`]+)`", row)]


REGISTRIES = [
    Registry("methods", NAMED, "docs/methods.md", "method"),
    Registry("losses", NAMED, "docs/methods.md", "loss"),
    Registry("sketched_solvers", NAMED, "docs/methods.md", "`--solver`"),
    Registry("sketches", IN_FILE, "docs/methods.md", "`--sketch`"),
    Registry("protocols", LISTED, "docs/secure.md", "`--protocol`"),
]
FORMATS = Registry("formats", ENDINGS, "docs/formats.md", "format")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.macro)
def test_tables_name_what_is_registered(registry: Registry) -> None:
    registered = registry.variants()
    assert registered
    assert registry.named() == registered


def test_the_table_of_formats_describes_what_is_registered() -> None:
    """A format has no name that people choose; its row begins with its line of documentation."""
    registered = [description.removesuffix(".") for description in FORMATS.variants()]
    assert registered
    assert FORMATS.rows() == registered


@pytest.mark.parametrize("registry", [*REGISTRIES, FORMATS], ids=lambda registry: registry.macro)
def test_every_line_of_a_registry_is_read(registry: Registry) -> None:
    """A line that the pattern does not fit would be missing from the comparison."""
    calls = [
        re.search(rf"^{registry.macro}! \{{\n(.*?)^\}}", source.read_text(), re.MULTILINE | re.DOTALL) for source in SOURCES
    ]
    (call,) = [call.group(1) for call in calls if call]
    hidden = len(re.findall(r"#\[cfg\(test\)\]", call))
    assert len(re.findall(r";\s*$", call, re.MULTILINE)) == len(registry.variants()) + hidden
