"""Runs the blocks of a page in order, in one folder, and reports deviations from the page."""

import ast
import contextlib
import io
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback
import unittest.mock
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from compare import difference
from pages import DIRECTIVES, ROOT, Block

# Seconds that a block may take; all of them together take less.
LIMIT = 60.0

# Real matrices, which are not part of the repository.
DATA = Path(os.environ.get("PARTWISE_DATA", ROOT / "../shared/data")).resolve()

# Languages of blocks that nothing runs: each such block says why.
SHOWN = {"dockerfile", "ini", "toml", "json"}

PARTWISE = """#!/bin/sh
# The port of the status page may be taken on this machine.
case "$*" in
    *--status-address* | *--help*) ;;
    "coordinator run"*) set -- "$@" --status-address none ;;
esac
exec "{program}" "$@"
"""

CARGO = """#!/bin/bash
# `cargo run --release -- ...` and `cargo run --release -p partwise --example NAME ...` run what is built already; all else that
# Cargo does is not for this test.
if [ "$1 $2 $3" = "run --release --" ]; then shift 3; exec partwise "$@"; fi
if [ "$1 $2 $3 $4 $5" = "run --release -p partwise --example" ]; then shift 5; exec "target/release/examples/$1" "${{@:2}}"; fi
echo "cargo $*: not in this test; mark the block with <!-- not run: REASON -->" >&2
exit 1
"""


def free_port() -> int:
    """A free port, below the range that the system assigns to connections."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def environment(folder: Path, program: Path) -> dict[str, str]:
    """What commands find: the built programs, an empty home, and a free port."""
    commands = folder / ".commands"
    commands.mkdir()
    for name, script in (("partwise", PARTWISE.format(program=program)), ("cargo", CARGO.format())):
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder / ".home"),
        "XDG_CONFIG_HOME": str(folder / ".home"),
        "XDG_STATE_HOME": str(folder / ".home"),
        "PORT": str(free_port()),
        # What Open MPI asks of root, of machines with few cores, and of jobs at the same time.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "TMPDIR": str(folder / ".temporary"),
    }


class Runner:
    """One page's folder, like the top of a clone after a build, with its running processes and its Python names."""

    def __init__(self, folder: Path, program: Path, mpi: bool = True) -> None:
        self.folder = folder
        self.environment = environment(folder, program)
        self.mpi = mpi
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.sessions: list[int] = []
        self.problems: list[str] = []
        self.left_out: list[int] = []
        (folder / ".home").mkdir()
        (folder / ".temporary").mkdir()
        shutil.copytree(ROOT / "data", folder / "data")
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "target").mkdir()
        (folder / "target/release").symlink_to(program.parent)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        for session in self.sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)

    def run(self, blocks: list[Block]) -> list[str]:
        """Runs all of them and returns what is wrong, each with its line."""
        # What the last block printed, until an output block has been compared with it.
        printed: str | None = None
        for block in blocks:
            try:
                if self.is_left_out(block):
                    continue
                if block.language in ("", "text"):
                    if printed is None:
                        raise ValueError("no command before it printed this; say why with <!-- not run: REASON -->")
                    wrong = difference(block.text, printed)
                    printed = None
                    if wrong:
                        raise ValueError(f"other output than the page has\n{wrong}")
                    continue
                self.prepare(block)
                printed = self.execute(block)
            except Exception as error:
                self.problems.append(f"line {block.line}: {error}")
        return self.problems

    def is_left_out(self, block: Block) -> bool:
        if unknown := block.directives.keys() - DIRECTIVES.keys():
            raise ValueError(f"<!-- {unknown.pop()}: ... --> is none of {', '.join(DIRECTIVES)}")
        if block.language not in {"", "text", "sh", "python", "rust", *SHOWN}:
            raise ValueError(f"the language {block.language!r} is unknown to this test")
        for key in ("not run", "at once"):
            if key in block.directives and len(block.directives[key]) < 8:
                raise ValueError(f"<!-- {key}: ... --> needs a reason")
        if block.language in SHOWN and "not run" not in block.directives:
            raise ValueError("say why it is not run with <!-- not run: REASON -->")
        if "not run" in block.directives:
            return True
        without_mpi = not self.mpi and block.language == "sh" and "mpirun" in block.text
        if without_mpi or not self.has_files(block.directives.get("needs", "")):
            self.left_out.append(block.line)
            return True
        return False

    def has_files(self, names: str) -> bool:
        """Whether all of them are among the real matrices, and then in the page's folder."""
        files = [DATA / name.strip() for name in names.split(",") if name.strip()]
        if not all(file.exists() for file in files):
            return False
        for file in files:
            (self.folder / file.name).unlink(missing_ok=True)
            (self.folder / file.name).symlink_to(file)
        return True

    def prepare(self, block: Block) -> None:
        if commands := block.directives.get("before"):
            self.shell(commands)

    def execute(self, block: Block) -> str:
        if block.language == "python":
            return self.python(block)
        if block.language == "rust":
            return self.rust(block)
        if "at once" in block.directives:
            return self.at_once(block.text)
        return self.shell(block.text)

    def shell(self, script: str) -> str:
        """Standard output and error together. What runs in the background goes on until the page's end."""
        process, log = self.start(script)
        return self.finish(process, log, script)

    def at_once(self, script: str) -> str:
        commands = script.replace("\\\n", " ").splitlines()
        started = [(*self.start(command), command) for command in commands]
        return "".join(self.finish(*process) for process in started)

    def start(self, script: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.folder / ".temporary" / f"log-{len(self.sessions)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"set -euo pipefail\n{script}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.sessions.append(process.pid)
        return process, log

    def finish(self, process: subprocess.Popen[bytes], log: Path, script: str) -> str:
        try:
            code: int | str = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = f"none after {LIMIT:.0f} seconds"
        output = log.read_text(errors="replace")
        if code != 0:
            raise ValueError(f"exit code {code}\n{script.strip()}\n{output}")
        return output

    @staticmethod
    @contextlib.contextmanager
    def limited() -> Iterator[None]:
        """Ends Python code that takes too long, by a signal."""

        def end(*_: object) -> NoReturn:
            raise TimeoutError(f"not done after {LIMIT:.0f} seconds")

        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def python(self, block: Block) -> str:
        """Runs Python statement by statement; a comment after `print(...)` is the expected output."""
        where = f"<page, line {block.line}>"
        lines = block.text.splitlines()
        printed = ""
        for statement in ast.parse(block.text).body:
            output = io.StringIO()
            try:
                code = compile(ast.Module([statement], []), where, "exec")
                with (
                    contextlib.redirect_stdout(output),
                    contextlib.chdir(self.folder),
                    # The same home folder as that of commands, which has the ledgers.
                    unittest.mock.patch.dict(os.environ, self.environment),
                    warnings.catch_warnings(),
                    self.limited(),
                ):
                    warnings.simplefilter("error")
                    exec(code, self.names)
            except Exception:
                raise ValueError(f"{ast.unparse(statement)}\n{traceback.format_exc(limit=-3)}") from None
            printed += output.getvalue()
            behind = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode()
            if ast.unparse(statement).startswith("print(") and (comment := behind.strip().removeprefix("#").strip()):
                if wrong := difference(comment, output.getvalue()):
                    raise ValueError(f"other output than the comment has\n{wrong}")
        return printed

    def rust(self, block: Block) -> str:
        """Checks that every line of a block is in the code, ignoring blanks; `...` stands for anything."""
        code = "\n".join(re.sub(r"\s+", "", path.read_text()) for path in sorted((ROOT / "crates").rglob("*.rs")))
        for line in block.text.splitlines():
            pieces = re.sub(r"\s+", "", line.partition("//")[0]).split("...")
            if not re.search(".*".join(map(re.escape, pieces)), code):
                raise ValueError(f"no such line in crates: {line.strip()}")
        return ""
