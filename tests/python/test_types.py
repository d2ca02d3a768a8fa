"""Type checkers find the errors in a wrong script, and none in a correct one."""

import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import partwise
from partwise import _nmf, _partwise, _types

PREFIX = """
import numpy as np
import partwise
from partwise import NMF
X = np.ones((6, 4))
"""

RIGHT = PREFIX + """
model = NMF(2, solver="hals", init="nndsvda", random_state=0)
known = NMF(2, beta_loss="kullback-leibler", missing_values=np.nan).fit(X)
W = model.fit_transform(X)
print(W.shape, W @ model.components_)
W, H, n_iter = partwise.non_negative_factorization(X, n_components=2, tol=1e-3)
result = partwise.simulate(X, 2, parties=3, protocol="syn-sd", rounds=3)
print(result.V.shape, n_iter + 1)
"""

WRONG = [
    'NMF(2, solver="hls")',
    'NMF(2, sovler="hals")',
    'partwise.non_negative_factorization(X, sovler="hals")',
    'NMF(2, beta_loss="kullback")',
    'NMF(2, missing_values="zero")',
    'partwise.simulate(X, 2, protocol="sin-sd")',
    "partwise.simulate(X, 2, ronds=3)",
    "NMF(2).fit_transform(X).fit()",
]


def lines_by_mypy(script: Path) -> list[int]:
    command = [sys.executable, "-m", "mypy", "--strict", "--output=json", f"--cache-dir={script.parent / 'cache'}", str(script)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=script.parent)
    assert found.returncode in (0, 1), found.stderr
    problems = [json.loads(line) for line in found.stdout.splitlines() if line]
    return [problem["line"] for problem in problems if problem["severity"] == "error"]


def lines_by_pyright(script: Path) -> list[int]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(script)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=script.parent)
    if found.returncode not in (0, 1):
        pytest.skip(f"pyright does not run here: {(found.stderr or found.stdout)[-300:]}")
    problems = json.loads(found.stdout)["generalDiagnostics"]
    return [problem["range"]["start"]["line"] + 1 for problem in problems if problem["severity"] == "error"]


CHECKERS = {"mypy": lines_by_mypy, "pyright": lines_by_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_find_wrong_names_and_nothing_else(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    script = tmp_path / "script.py"
    script.write_text(RIGHT)
    assert CHECKERS[checker](script) == []
    script.write_text(PREFIX + "\n".join(WRONG))
    begin = len(PREFIX.splitlines()) + 1
    assert sorted(set(CHECKERS[checker](script))) == list(range(begin, begin + len(WRONG)))


def test_types_have_the_choices_of_the_compiled_part() -> None:
    def names(of: typing.Any) -> set[str]:
        return set(typing.get_args(of))

    choices = {name: set(values) for name, values in _partwise.choices().items()}
    assert names(_types.Init) == choices["init"] | {"custom"}
    assert names(_types.Solver) == choices["algorithm"] | {"cd"}
    assert names(_types.Sketch) == choices["sketch"]
    assert names(_types.SketchSolver) == choices["solver"]
    assert names(_types.Normalize) == choices["normalize"]
    assert names(_types.Protocol) == choices["protocol"]
    assert set(typing.get_type_hints(_types.SimulationSettings)) == choices["simulation"]
    assert set(_nmf.LOSSES.values()) == choices["loss"]
    literal, number = typing.get_args(_types.BetaLoss)
    assert (names(literal), number) == ({name for name in _nmf.LOSSES if isinstance(name, str)}, float)


def test_docstrings_list_the_choices() -> None:
    for protocol in _partwise.choices()["protocol"]:
        assert repr(protocol) in str(partwise.simulate.__doc__), protocol


def test_types_have_the_parameters_of_the_estimator() -> None:
    parameters = set(typing.get_type_hints(_types.SeededParameters))
    assert parameters | {"n_components"} == set(partwise.NMF().get_params())


def test_scikit_learn_is_imported_with_the_estimator() -> None:
    script = "import sys, partwise; assert 'sklearn' not in sys.modules; partwise.NMF; assert 'sklearn' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
