"""A pytest plugin: scikit-learn's own tests of NMF, with Partwise's class and function in place of theirs.

Cases listed in `exempt.txt` are left out; one that is listed and does not exist is an error.
"""

import pathlib

import partwise
import pytest
import sklearn.decomposition

sklearn.decomposition.NMF = partwise.NMF
sklearn.decomposition.non_negative_factorization = partwise.non_negative_factorization

LIST = pathlib.Path(__file__).with_name("exempt.txt")
EXEMPT = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def pytest_collection_modifyitems(config, items):
    names = {item.name for item in items}
    if unknown := [name for name in EXEMPT if name not in names]:
        raise pytest.UsageError(f"{LIST}: there is no case {unknown[0]}; remove it")
    config.hook.pytest_deselected(items=[item for item in items if item.name in EXEMPT])
    items[:] = [item for item in items if item.name not in EXEMPT]
