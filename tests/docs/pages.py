"""Reads Markdown pages: fenced blocks with the comments that steer them, code spans, links and anchors."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What a comment before a fence may say: `<!-- KEY: text -->`.
DIRECTIVES = {
    "not run": "why the block is not run",
    "needs": "files of the folder PARTWISE_DATA; without them the block is not run",
    "before": "shell commands that prepare the folder and are not shown",
    "at once": "why all commands of the block run at the same time",
}

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


@dataclass
class Block:
    """A fenced block: the line of its fence, its language, its text, and the comments right before it."""

    line: int
    language: str
    text: str
    directives: dict[str, str] = field(default_factory=dict)


def pages() -> list[Path]:
    """Every page that people read: the root's, those of data and examples, and all of docs."""
    found = [*ROOT.glob("*.md"), *(ROOT / "data").glob("*.md")]
    for folder in ("docs", "examples"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def blocks(text: str) -> list[Block]:
    found = []
    for fence in FENCE.finditer(text):
        comments = COMMENTS.search(text, 0, fence.start())
        directives = {}
        for comment in COMMENT.findall(comments.group() if comments else ""):
            key, _, value = comment.partition(":")
            directives[key.strip()] = value.strip()
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(line, fence.group(1), fence.group(2), directives))
    return found


def prose(text: str) -> str:
    """The page without its fenced blocks and comments, line by line where it was."""
    for pattern in (FENCE, COMMENT):
        text = pattern.sub(lambda match: "\n" * match.group().count("\n"), text)
    return text


def code_spans(text: str) -> list[tuple[int, str]]:
    """Inline code with its line number; a span that is wrapped is joined."""
    text = prose(text)
    spans = re.finditer(r"(`+)(?!`)((?:(?!\n\n).)+?)(?<!`)\1(?!`)", text, re.DOTALL)
    return [(text.count("\n", 0, span.start()) + 1, " ".join(span.group(2).split())) for span in spans]


def indented_code(text: str) -> list[tuple[int, str]]:
    """Lines of code blocks that are indented instead of fenced."""
    lines = prose(text).splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        after_blank = number > 1 and (not lines[number - 2].strip() or (found and found[-1][0] == number - 1))
        if line.startswith("    ") and after_blank:
            found.append((number, line.strip()))
    return found


def links(text: str) -> list[tuple[int, str]]:
    """The targets of links and pictures with their line numbers."""
    text = re.sub(r"(`+)[^`\n]+\1", lambda code: "`" * len(code.group()), prose(text))
    found = re.finditer(r"\]\(([^()\s]+)\)", text)
    return [(text.count("\n", 0, link.start()) + 1, link.group(1)) for link in found]


def anchors(text: str) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", prose(text), re.MULTILINE):
        heading = re.sub(r"\]\([^)]*\)", "", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")
        count = 0
        while (anchor := f"{slug}-{count}" if count else slug) in found:
            count += 1
        found.add(anchor)
    return found
