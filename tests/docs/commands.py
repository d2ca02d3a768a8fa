"""What the program can be told, from its help, and the command lines that pages show."""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

from pages import blocks, code_spans

# Texts that begin like a command and are none: the first lines of files, imports, and a message.
NOT_COMMANDS = ("partwise checkpoint ", "partwise transcript ", "from partwise ", "import partwise", "make room there")


@cache
def help_of(program: Path, command: tuple[str, ...] = ()) -> str:
    done = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


@cache
def options(program: Path, command: tuple[str, ...] = ()) -> dict[tuple[str, ...], set[str]]:
    """The options of each command and of its subcommands, hidden ones left out."""
    text = help_of(program, command)
    found = {command: set(re.findall(r"^ +(?:-\w, )?(--[a-z][\w-]*)", text, re.MULTILINE))}
    found[command] |= set(re.findall(r"^ +(-\w)\b", text, re.MULTILINE)) | {"--help", "-h"}
    found[command] |= {alias for aliases in re.findall(r"\[alias(?:es)?: ([^]]*)\]", text) for alias in aliases.split(", ")}
    listed = re.search(r"^Commands:\n((?:  .*\n|\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  ([a-z][\w-]*)", listed.group(1) if listed else "", re.MULTILINE):
        if name != "help":
            found |= options(program, (*command, name))
    return found


def words(line: str) -> list[str]:
    """As a shell splits them; what no shell could read, such as a lone quote, at its blanks."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def command_lines(text: str) -> list[tuple[int, str]]:
    """Lines of blocks and inline code, with their line numbers."""
    found = [(line, code) for line, code in code_spans(text) if not code.startswith(NOT_COMMANDS)]
    for block in blocks(text):
        if block.language in ("sh", "ini"):
            for number, line in enumerate(block.text.replace("\\\n", " ").splitlines(), block.line + 1):
                found.append((number, line.removeprefix("ExecStart=")))
    return found


def problem_of(line: str, program: Path) -> str | None:
    """What is wrong with a command line, if it is one of ours: an unknown command or option."""
    known = options(program)
    rest = words(line)
    # `cargo run -p partwise` names the library.
    called = [place for place, word in enumerate(rest) if word.rpartition("/")[2] == "partwise" and rest[place - 1 : place] != ["-p"]]
    ours = next(iter(called), None)
    if ours is not None:
        rest = rest[ours + 1 :]
    elif not (len(rest) > 1 and (rest[0],) in known):
        return None
    if rest[:1] == ["help"]:
        rest = rest[1:]
    command: tuple[str, ...] = ()
    while rest and (*command, rest[0]) in known:
        command = (*command, rest.pop(0))
    if ours is not None and rest and any(len(key) > len(command) and key[: len(command)] == command for key in known):
        if not rest[0].startswith("-") and rest[0] != "...":
            return f"there is no command {' '.join((*command, rest[0]))}"
    for word in rest:
        if word in ("|", "&&", ";", "&"):
            break
        option = word.partition("=")[0]
        if re.fullmatch(r"-[a-z]|--[a-z][\w-]*", option) and option not in known[command]:
            return f"partwise {' '.join(command)} has no option {option}"
    return None
