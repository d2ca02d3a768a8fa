"""Tests of the runner itself: errors that it must detect."""

from pathlib import Path

import pytest
from commands import problem_of
from compare import difference
from pages import anchors, blocks, code_spans, links
from runner import Runner


def problems(page: str, folder: Path, program: Path) -> list[str]:
    with Runner(folder, program) as runner:
        return runner.run(blocks(page))


@pytest.mark.parametrize(
    "page, problem",
    [
        ("```sh\nfalse\n```\n", "exit code 1"),
        ("```sh\nfalse\ntrue\n```\n", "exit code 1"),
        ("```sh\ncargo install nothing\n```\n", "not in this test"),
        ("<!-- not run: -->\n```sh\nfalse\n```\n", "needs a reason"),
        ("<!-- not runn: it takes hours -->\n```sh\nfalse\n```\n", "is none of"),
        ("```fish\ntrue\n```\n", "unknown to this test"),
        ("<!-- not run: another shell -->\n```fish\ntrue\n```\n", "unknown to this test"),
        ("```ini\na = 1\n```\n", "say why"),
        ("```\nan output of nothing\n```\n", "no command before it"),
        ("```sh\necho 1\n```\n\n```\n2\n```\n", "other output"),
        ("```python\nprint(1)  # 2\n```\n", "other output"),
        ("```python\nprint(missing)\n```\n", "NameError"),
        ("```python\nimport warnings\nwarnings.warn('old', DeprecationWarning)\n```\n", "DeprecationWarning"),
        ("```rust\nfn there_is_no_such_function_in_the_code();\n```\n", "no such line"),
        ("<!-- before: exit 3 -->\n```sh\ntrue\n```\n", "exit code 3"),
        ("<!-- at once: two machines -->\n```sh\ntrue\nfalse\n```\n", "exit code 1"),
    ],
)
def test_what_is_wrong_is_found(page: str, problem: str, tmp_path: Path, program: Path) -> None:
    found = problems(page, tmp_path, program)
    assert len(found) == 1 and problem in found[0], found


def test_a_sound_page_has_no_problems(tmp_path: Path, program: Path) -> None:
    page = """
<!-- before: sleep 0.1 & echo 5 > prepared -->
```sh
cat prepared
```

prints

```
5
```

<!-- not run: nobody has so many machines -->
```sh
mpirun -n 100000 partwise
```

```python
x = 0.25704
print((1797, 16), x)  # (1797, 16) 0.257
```

<!-- at once: each waits for the other -->
```sh
until [ -e one ]; do sleep 0.01; done; touch two
touch one; until [ -e two ]; do sleep 0.01; done
```
"""
    assert problems(page, tmp_path, program) == []


@pytest.mark.parametrize(
    "expected, actual, same",
    [
        ("error 0.257024 after 47 iterations and 0.03 s", "error 0.257031 after 52 iterations and 1.2 s", True),
        ("error 0.257024", "error 0.2601", False),
        ("after 47 iterations", "after 90 iterations", False),
        ("1797 x 64", "1797 x 65", False),
        ("2 threads", "16 threads", True),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("a\n...", "b\nc", False),
        ("a  b", "a b", True),
        ("a", "a\nb", False),
        ("in /home/me/result", "in /tmp/x-1/result", True),
        ("7.8% of it", "7.9% of it", True),
        ("7.8% of it", "9.1% of it", False),
    ],
)
def test_outputs_are_compared_with_a_tolerance(expected: str, actual: str, same: bool) -> None:
    assert (difference(expected, actual) is None) == same


def test_pages_are_read() -> None:
    page = "# `run.json`, and more\n\nA `code\nspan` and ``a ` b``, [a\nlink](there.md#x).\n\n```sh\n# no [link](y)\n```\n"
    assert anchors(page) == {"runjson-and-more"}
    assert [span for _, span in code_spans(page)] == ["run.json", "code span", "a ` b"]
    assert links(page) == [(5, "there.md#x")]
    assert blocks(page)[0].line == 7


@pytest.mark.parametrize(
    "line, problem",
    [
        ("partwise factorise M.npz", "there is no command factorise"),
        ("partwise coordinator start x", "there is no command coordinator start"),
        ("partwise top digits --number 3", "partwise top has no option --number"),
        ("mpirun -n 4 target/release/partwise factorize M.npz --ranks 5", "partwise factorize has no option --ranks"),
        ("simulate --loose 3@20", "partwise simulate has no option --loose"),
        ("partwise factorize M.npz -k 5 --out result", None),
        ("partwise factorize ... --threads 8", None),
        ("partwise help factorize", None),
        ("QUICK=1 make bench", None),
    ],
)
def test_unknown_commands_and_options_are_found(line: str, problem: str | None, program: Path) -> None:
    assert problem_of(line, program) == problem
