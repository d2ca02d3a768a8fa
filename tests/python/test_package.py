"""The parts of the package other than its code."""

import ast
import importlib.metadata
import inspect
import pathlib

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
