"""What pages name exists: commands and options, make targets, files, links, and the decisions that code cites."""

import os
import re
from pathlib import Path

import pytest
from commands import command_lines, help_of, options, problem_of, words
from pages import ROOT, anchors, blocks, code_spans, links, pages

# Options of other programs that pages name by themselves.
OTHER_OPTIONS = {
    "cargo": {"--features", "--release", "--ignored", "--locked"},
    "mpirun": {"--allow-run-as-root", "--bind-to", "--oversubscribe"},
    "sbatch": {"--signal"},
    "flower-superlink": {"--enable-supernode-auth"},
    "partwise_bench": {"--budget", "--cap", "--only", "--redo-disturbed"},
}

# Folders of the repository whose files pages name, and endings of files that are only ever its own.
FOLDERS = ("bench", "crates", "data", "docs", "examples", "experiments", "fuzz", "tests", "tools")
ENDINGS = (".rs", ".py", ".sh", ".proto")
# What is there only after a command, or elsewhere.
NOT_HERE = {"bench/.venv", "bench/quick", "fuzz/corpus", "fuzz/artifacts/TARGET", "sklearn/decomposition/tests/test_nmf.py"}

every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def files() -> list[Path]:
    """All files of the repository but hidden and built ones, by their paths in it."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("target", "__pycache__") and name[0] != "."]
        found += [(Path(folder) / name).relative_to(ROOT) for name in names]
    return found


FILES = files()


@every_page
def test_commands_and_options_exist(page: Path, program: Path) -> None:
    found = [(line, problem_of(code, program)) for line, code in command_lines(page.read_text())]
    assert [f"line {line}: {problem}" for line, problem in found if problem] == []


@every_page
def test_options_named_alone_exist(page: Path, program: Path) -> None:
    known = set().union(*options(program).values(), *OTHER_OPTIONS.values())
    wrong = []
    for line, code in code_spans(page.read_text()):
        option = re.match(r"--[a-z][\w-]*", code)
        # `--accept-that-...` stands for all that begin so.
        if option and not any(one == option.group() or (code.endswith("...") and one.startswith(option.group())) for one in known):
            wrong.append((line, code))
    assert wrong == []


def test_examples_in_help_are_possible(program: Path) -> None:
    examples = [
        line.strip()
        for command in options(program)
        for line in help_of(program, command).splitlines()
        if re.match(r" +(mpirun.* )?partwise ", line)
    ]
    assert len(examples) > 10
    assert [(line, problem) for line in examples if (problem := problem_of(line, program))] == []


@every_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][\w -]*):(?!=)", makefile, re.MULTILINE) for name in line.split()}
    wrong = []
    for line, code in command_lines(page.read_text()):
        called = [word for word in words(code) if "=" not in word]
        if called[:1] == ["make"]:
            named = called[1:]
            wrong += [(line, name) for name in named if re.fullmatch(r"[a-z][\w-]*", name) and name not in targets]
    assert wrong == []


@every_page
def test_files_that_are_named_exist(page: Path) -> None:
    """A path from the top of the repository, or the end of one."""
    wrong = []
    for line, code in code_spans(page.read_text()):
        path = Path(code)
        ours = path.parts[0] in FOLDERS and len(path.parts) > 1 or code.endswith(ENDINGS) and code not in ENDINGS
        if not re.fullmatch(r"[\w./-]+", code) or not ours or code in NOT_HERE:
            continue
        if not (ROOT / path).exists() and not any(file.parts[-len(path.parts) :] == path.parts for file in FILES):
            wrong.append((line, code))
    assert wrong == []


@every_page
def test_links_resolve(page: Path) -> None:
    wrong = []
    for line, link in links(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            wrong.append((line, link))
    assert wrong == []


def test_decisions_that_are_cited_exist() -> None:
    decisions = {path.stem for path in (ROOT / "docs/decisions").glob("*.md")}
    numbers = {decision[:4] for decision in decisions}
    wrong = []
    for file in FILES:
        if file.suffix not in (".md", ".rs", ".toml", ".py", ".pyi", ".sh", ".proto") and file.name != "Makefile":
            continue
        text = (ROOT / file).read_text()
        wrong += [(str(file), name) for name in re.findall(r"decisions/(\d{4}[\w-]*)", text) if name not in decisions]
        wrong += [(str(file), name) for name in re.findall(r"[Dd]ecision\s+(\d{4})", text) if name not in numbers]
    assert wrong == []


def test_the_layout_is_that_of_the_repository() -> None:
    """CONTRIBUTING.md lists every crate, every folder of tests and of examples, and nothing else."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    listed = {line.split()[0] for line in blocks(page)[0].text.splitlines()}
    assert [folder for folder in sorted(listed) if not (ROOT / folder).is_dir()] == []
    parted = {"crates", "tests", "examples"}
    there = {file.parts[0] for file in FILES if len(file.parts) > 1} - parted
    there |= {"/".join(file.parts[:2]) for file in FILES if file.parts[0] in parted and len(file.parts) > 2}
    assert sorted(there - listed) == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_code_that_is_named_exists(name: str) -> None:
    """Types, functions and lines of Rust; of a path such as `Kind::of` every part."""
    code = "\n".join((ROOT / file).read_text() for file in FILES if file.suffix in (".rs", ".py"))
    known = set(re.findall(r"\w+", code))
    packed = re.sub(r"\s+", "", code)
    wrong = []
    for line, span in code_spans((ROOT / name).read_text()):
        if re.fullmatch(r"[A-Za-z]\w*(::\w+)+|[A-Z]\w*[a-z]\w*|[a-z]+(_[a-z]+)+", span):
            found = set(span.split("::")) <= known
        elif " => " in span or "fn " in span:
            found = re.sub(r"\s+", "", span) in packed
        else:
            continue
        if not found:
            wrong.append((line, span))
    assert wrong == []
