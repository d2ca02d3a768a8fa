"""Compares the output shown in a page with the output of a command."""

import difflib
import re

# Patterns that depend on the machine, the clock or chance, and their placeholders in a comparison.
WILDCARDS = [
    (re.compile(r"\b\d+(\.\d+)?(e[+-]?\d+)? ?(s|ms|µs|us|seconds?)\b"), "<time>"),
    (re.compile(r"\b\d+ threads?\b"), "<threads>"),
    (re.compile(r"\bsha256:[0-9a-f]+"), "<fingerprint>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"(?<![\w.])/[\w./-]+"), "<path>"),
]
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")

# Other CPUs round differently: relative errors differ in their last digits, and iterative methods may stop earlier or later.
TOLERANCE = 1e-3
COUNT_TOLERANCE = 0.25
COUNTS = re.compile(r"^ (iterations|rounds)\b")


def same_number(expected: str, actual: str, tolerance: float) -> bool:
    decimals = len(expected.partition(".")[2]) if "e" not in expected else 0
    last_digit = 10.0**-decimals if "." in expected else 0.0
    return abs(float(expected) - float(actual)) <= tolerance * abs(float(expected)) + last_digit


def same_line(expected: str, actual: str) -> bool:
    parts = []
    for line in (expected, actual):
        for pattern, stands_for in WILDCARDS:
            line = pattern.sub(stands_for, line)
        parts.append(NUMBER.split(" ".join(line.split())))
    if len(parts[0]) != len(parts[1]):
        return False
    for place, (one, other) in enumerate(zip(*parts)):
        if place % 2 == 0:
            equal = one == other
        elif COUNTS.match(parts[0][place + 1]):
            equal = same_number(one, other, COUNT_TOLERANCE)
        elif one.isdecimal() and other.isdecimal():
            equal = one == other
        else:
            equal = same_number(one, other, TOLERANCE)
        if not equal:
            return False
    return True


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the lines are the same; a line `...` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(matches(expected[1:], actual[skipped:]) for skipped in range(len(actual) + 1))
    return bool(actual) and same_line(expected[0], actual[0]) and matches(expected[1:], actual[1:])


def difference(expected: str, actual: str) -> str | None:
    """The difference between a page's output and the real one, or None."""
    lines = [[line for line in text.splitlines() if line.strip()] for text in (expected, actual)]
    if matches(*lines):
        return None
    return "\n".join(difflib.unified_diff(*lines, "the page", "the command", lineterm=""))
