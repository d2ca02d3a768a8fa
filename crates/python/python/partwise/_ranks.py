"""Choosing the number of components."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise import _partwise
from partwise._checks import finite, number, one_of, readable, threads, unmasked
from partwise._types import BetaLoss, Seed, Solver


@dataclass(frozen=True)
class RankSelection:
    """What `select_rank` found: one entry per number of components in each array."""

    suggested: int | None
    """The suggested number of components, if there is one."""
    reason: str
    """Why it is suggested, or why none is."""
    components: NDArray[np.int64]
    """The numbers of components, in ascending order."""
    loss: NDArray[np.float64]
    """The mean loss of the restarts, as a share of that of the baseline."""
    loss_se: NDArray[np.float64]
    """Its standard error."""
    heldout_loss: NDArray[np.float64]
    """The mean loss on held-out blocks."""
    heldout_se: NDArray[np.float64]
    """Its standard error."""
    stability: NDArray[np.float64]
    """The mean cosine of matched components of two restarts; NaN with one restart."""
    worst_stability: NDArray[np.float64]
    """The lowest cosine of matched components."""
    cophenetic: NDArray[np.float64]
    """The cophenetic correlation of the consensus of the restarts."""
    silhouette: NDArray[np.float64]
    """The silhouette of the components of all restarts."""


def select_rank(
    X: Any,
    components: Iterable[int] = range(2, 21),
    *,
    n_restarts: int = 10,
    solver: Solver = "auto",
    beta_loss: BetaLoss = "frobenius",
    tol: float = 1e-4,
    max_iter: int = 500,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> RankSelection:
    """Compare numbers of components, as ``partwise ranks`` does.

    For each number, random restarts show how stable the components are, and five
    folds show how well held-out blocks of X are predicted (bi-cross-validation).
    The smallest number is suggested whose held-out loss is within one standard error
    of the best and whose stability is at least 0.9.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Nonnegative entries, with at least five rows and five columns.
    components : iterable of int, default=range(2, 21)
        The numbers of components to try.
    n_restarts : int, default=10
        Random starts for each number.
    solver : {'auto', 'hals', 'mu', 'bpp', 'cd'}, default='auto'
        The method of every fit, as for `NMF`.
    beta_loss : float or {'frobenius', 'kullback-leibler', 'itakura-saito'}, default='frobenius'
        The loss, as for `NMF`.
    tol : float, default=1e-4
        Tolerance of the stopping rule, as for `NMF`.
    max_iter : int, default=500
        Maximum number of iterations of each fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the held-out blocks.
    n_jobs : int, default=None
        Fits that run at the same time, each on one thread; None for all cores.

    Returns
    -------
    RankSelection
        The curves, and ``suggested``.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import select_rank
    >>> generator = np.random.default_rng(0)
    >>> X = generator.exponential(size=(80, 4)) @ generator.exponential(size=(4, 50))
    >>> noise = 0.3 * generator.normal(size=X.shape)
    >>> select_rank(np.maximum(X + noise, 0), range(2, 8), n_restarts=5, random_state=0).suggested
    4
    """
    from sklearn.utils import check_array, check_random_state

    from partwise._nmf import ALGORITHMS, LOSSES

    tried = list(components)
    for each in tried:
        number("components", each, Integral, 1)
    number("n_restarts", n_restarts, Integral, 1)
    number("max_iter", max_iter, Integral, 1)
    number("tol", tol, Real, 0)
    one_of("solver", solver, [name for name in ALGORITHMS if name != "dsanls"])
    if beta_loss not in LOSSES:
        raise ValueError(f"beta_loss is {beta_loss!r}; give one of {', '.join(repr(name) for name in LOSSES)}")
    X = readable(check_array(unmasked(X), accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32]))
    if (X.data if hasattr(X, "indptr") else X).min(initial=0) < 0:
        raise ValueError("X has entries below 0; give a nonnegative matrix")
    seed = random_state if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31)
    settings = {
        "algorithm": ALGORITHMS[solver],
        "loss": LOSSES[beta_loss],
        "seed": int(seed),
        "iterations": int(max_iter),
        "tolerance": finite(tol) / 10,
    }
    found = json.loads(
        _partwise.select_rank(
            X,
            single=X.dtype == np.float32,
            components=[int(each) for each in tried],
            restarts=int(n_restarts),
            settings=json.dumps(settings),
            threads=threads(n_jobs),
        )
    )
    rows = found["rows"]

    def column(name: str) -> NDArray[np.float64]:
        return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)

    return RankSelection(
        found["suggested"],
        found["reason"],
        np.array([row["components"] for row in rows], dtype=np.int64),
        *(
            column(name)
            for name in (
                "loss", "loss_se", "heldout_loss", "heldout_se", "stability", "worst_stability", "cophenetic", "silhouette"
            )
        ),
    )
