"""Every command and snippet of every page runs and prints the output that the page shows."""

from pathlib import Path

import pytest
from pages import ROOT, blocks, indented_code, pages
from runner import Runner

PAGES = [page for page in pages() if blocks(page.read_text())]
COMMANDS = ("partwise", "cargo", "make", "pip", "python", "mpirun", "$")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_as_written(page: Path, tmp_path: Path, program: Path, mpi: bool) -> None:
    with Runner(tmp_path, program, mpi) as runner:
        problems = runner.run(blocks(page.read_text()))
    assert not problems, "\n\n".join(f"{page.relative_to(ROOT)}, {problem}" for problem in problems)
    if runner.left_out:
        pytest.skip(f"without MPI or PARTWISE_DATA not run: the blocks at lines {runner.left_out}; all others ran")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_fenced(page: Path) -> None:
    """An indented block has no language, so nothing would run it."""
    commands = [(line, code) for line, code in indented_code(page.read_text()) if code.startswith(COMMANDS)]
    assert not commands
