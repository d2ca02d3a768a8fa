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

from partwise._anndata import nmf
from partwise._federation import Joined, Simulated, audit, join, simulate
from partwise._nmf import NMF, non_negative_factorization
from partwise._partwise import __version__
from partwise._progress import Progress

__all__ = [
    "NMF",
    "Joined",
    "Progress",
    "Simulated",
    "__version__",
    "audit",
    "join",
    "nmf",
    "non_negative_factorization",
    "simulate",
]
