"""Nonnegative matrix factorization, X ≈ W H with no entry below 0, where scikit-learn's NMF stands.

>>> import numpy as np
>>> from partwise import NMF
>>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
>>> model = NMF(n_components=2, init="random", random_state=0)
>>> W = model.fit_transform(X)
>>> H = model.components_
>>> bool(np.allclose(W @ H, X, atol=0.01))
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from partwise._partwise import __version__

if TYPE_CHECKING:
    from partwise._anndata import nmf
    from partwise._federation import Joined, Simulated, audit, join, simulate
    from partwise._nmf import NMF, non_negative_factorization
    from partwise._progress import Progress
    from partwise._ranks import RankSelection, select_rank

__all__ = [
    "NMF",
    "Joined",
    "Progress",
    "RankSelection",
    "Simulated",
    "__version__",
    "audit",
    "join",
    "nmf",
    "non_negative_factorization",
    "select_rank",
    "simulate",
]

#: The modules of names that are imported at their first use, because importing scikit-learn takes a second.
_MODULES = {
    "NMF": "_nmf",
    "Joined": "_federation",
    "Progress": "_progress",
    "RankSelection": "_ranks",
    "Simulated": "_federation",
    "audit": "_federation",
    "join": "_federation",
    "nmf": "_anndata",
    "non_negative_factorization": "_nmf",
    "select_rank": "_ranks",
    "simulate": "_federation",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    value = getattr(import_module(f"partwise.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
