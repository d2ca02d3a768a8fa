"""The parts of the package other than its code."""

import ast
import importlib.metadata
import inspect
import pathlib
import subprocess
import sys

import numpy as np

import partwise
from partwise import _partwise

FOLDER = pathlib.Path(partwise.__file__).parent


def test_the_stub_has_the_compiled_functions_as_they_are():
    stub = ast.parse((FOLDER / "_partwise.pyi").read_text())
    declared = {node.name: node.args for node in stub.body if isinstance(node, ast.FunctionDef)}
    compiled = {name for name, value in vars(_partwise).items() if callable(value)}
    assert set(declared) == compiled
    for name, arguments in declared.items():
        parameters = inspect.signature(getattr(_partwise, name)).parameters.values()
        kinds = {kind: [p.name for p in parameters if p.kind == kind] for kind in inspect._ParameterKind}
        assert [argument.arg for argument in arguments.args] == kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert [argument.arg for argument in arguments.kwonlyargs] == kinds[inspect.Parameter.KEYWORD_ONLY]


def test_types_and_version():
    assert (FOLDER / "py.typed").exists()
    assert partwise.__version__ == importlib.metadata.version("partwise")
    assert set(partwise.__all__) <= set(dir(partwise))


def test_the_program_is_installed(tmp_path):
    scripts = pathlib.Path(sys.executable).parent
    for command in ([str(scripts / "partwise")], [sys.executable, "-m", "partwise"]):
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert version.stdout.split() == ["partwise", partwise.__version__]
        wrong = subprocess.run([*command, "factorize", "none.npy", "-k", "2", "--out", "x"], capture_output=True, text=True, cwd=tmp_path)
        assert (wrong.returncode, "none.npy" in wrong.stderr) == (2, True)
    np.save(tmp_path / "M.npy", np.random.default_rng(0).random((30, 8)))
    command = [str(scripts / "partwise"), "factorize", "M.npy", "-k", "2", "--out", "result", "--quiet"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert np.load(tmp_path / "result" / "U.npy").shape == (30, 2)
