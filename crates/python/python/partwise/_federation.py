"""Federations: joining one, simulating one on this machine, and auditing what left its parties."""

import hashlib
import json
from dataclasses import dataclass
from numbers import Integral
from os import PathLike, fspath
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from partwise import _partwise
from partwise._checks import amount, number, readable, threads, unmasked
from partwise._types import Protocol, SimulationSettings


@dataclass(frozen=True)
class Joined:
    """The result of a party: X ≈ U Vᵀ with one row of X per record."""

    U: NDArray[Any]
    """This party's own factor, records x components."""
    V: NDArray[Any]
    """The shared factor, features x components, the same at every party."""
    report: dict[str, Any]


def _checked(X: Any) -> tuple[Any, str]:
    """X in a form that the compiled part reads, and its digest."""
    from sklearn.utils import check_array

    X = readable(check_array(unmasked(X), accept_sparse="csr", dtype=[np.float64, np.float32], order="C"))
    parts = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    if parts[0].min(initial=0) < 0:
        raise ValueError("X has entries below 0; give a nonnegative matrix")
    digest = hashlib.sha256(f"{X.shape} {X.dtype}".encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return X, digest.hexdigest()


def _matrix(numbers: bytes, k: int, dtype: Any) -> NDArray[Any]:
    return np.frombuffer(numbers, dtype=dtype).reshape(-1, k).copy()


def join(
    party: str | PathLike[str],
    X: Any,
    *,
    feature_names: list[str] | None = None,
    insecure: bool = False,
    n_jobs: int | None = None,
) -> Joined:
    """Take part in a federation, as ``partwise party join`` does.

    Parameters
    ----------
    party : str or path-like
        The party's ``party.toml``.
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        This party's records, with entries of at least 0.
    feature_names : list of str, default=None
        Names of the features, which are compared with those of the other parties
        without revealing them. With None, the column names of a data frame.
    insecure : bool, default=False
        Run without certificates and encryption, for trials on one machine.
    n_jobs : int, default=None
        Number of threads. With None the value of OMP_NUM_THREADS, else all
        cores; -1 is all cores.

    Returns
    -------
    Joined
        ``U`` (n_records, n_components), which never leaves this party, ``V``
        (n_features, n_components), the same at every party, and ``report``.

    Raises
    ------
    ConnectionError
        The coordinator cannot be reached, or refuses this party.
    ValueError
        X or the configuration is invalid, or the parties disagree.
    """
    if feature_names is None and hasattr(X, "columns"):
        feature_names = [str(name) for name in X.columns]
    X, digest = _checked(X)
    u, v, report = _partwise.join(
        fspath(party),
        X,
        single=X.dtype == np.float32,
        names=feature_names,
        digest=digest,
        insecure=bool(insecure),
        threads=threads(n_jobs),
    )
    told = json.loads(report)
    k = told["n_components"]
    return Joined(_matrix(u, k, X.dtype), _matrix(v, k, X.dtype), told)


@dataclass(frozen=True)
class Simulated:
    """The results of all parties of a simulated federation."""

    U: list[NDArray[Any]]
    """Each party's own factor, records x components, in the order of its records."""
    V: NDArray[Any]
    """The shared factor, features x components."""
    report: dict[str, Any]


def _setting(name: str, value: Any) -> Any:
    """A setting in JSON form."""
    if name in ("sketch_records", "sketch_features"):
        return amount(name, value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, str)) or isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name} is {value!r}; give a finite number, a truth value or a name")
    return value


def simulate(
    X: Any,
    n_components: int,
    *,
    parties: int | list[int] | NDArray[Any] = 5,
    protocol: Protocol = "syn-sd",
    **settings: Unpack[SimulationSettings],
) -> Simulated:
    """Run all parties of a federation on this machine, as ``partwise simulate`` does.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        The records of all parties, with entries of at least 0.
    n_components : int
        Number of components.
    parties : int or array of int of shape (n_records,), default=5
        Number of parties, to which the rows of X are distributed evenly in their
        order, or the party of each row, from 0.
    protocol : {'syn-sd', 'pooled', 'syn-ssd-u', 'syn-ssd-v', 'syn-ssd-uv', \
            'asyn-sd', 'asyn-ssd-v', 'dsanls-limited', 'few-rounds'}, default='syn-sd'
        Protocol of the federation, which determines what the parties sum.
    **settings
        Settings of the protocol by their names in ``run.json``, such as
        ``rounds``, ``seed`` and ``tolerance``, and accepted risks, such as
        ``pooled_sums_show_records=True``.

    Returns
    -------
    Simulated
        ``U``, a list with the factor of each party, ``V`` (n_features,
        n_components) and ``report``.

    Examples
    --------
    >>> import numpy as np
    >>> import partwise
    >>> X = np.random.default_rng(0).poisson(2.0, (400, 4))
    >>> result = partwise.simulate(X, 2, parties=3, rounds=3)
    >>> [U.shape for U in result.U], result.V.shape
    ([(134, 2), (133, 2), (133, 2)], (4, 2))
    """
    number("n_components", n_components, Integral, 1)
    X, _ = _checked(X)
    records = X.shape[0]
    if np.ndim(parties) == 0:
        number("parties", parties, Integral, 2, 255)
        count = int(parties)  # type: ignore[arg-type]
        # If the rows do not divide evenly, the first parties have one more.
        sizes = [records // count + (party < records % count) for party in range(count)]
        parties = np.repeat(np.arange(count), sizes)
    whose = np.asarray(parties)
    if whose.shape != (records,) or whose.dtype.kind not in "iu" or whose.min(initial=0) < 0:
        raise ValueError(f"parties must have a number from 0 for each of the {records} rows of X")
    factors, report = _partwise.simulate(
        X,
        single=X.dtype == np.float32,
        parties=whose.tolist(),
        protocol=protocol,
        rank=int(n_components),
        settings=json.dumps({name: _setting(name, value) for name, value in cast(dict[str, Any], settings).items()}),
    )
    v = _matrix(factors[0][1], n_components, X.dtype)
    return Simulated([_matrix(u, n_components, X.dtype) for u, _ in factors], v, json.loads(report))


def audit(
    folder: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    colluders: int | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Report what left the parties and what attacks recover from it, as ``partwise audit`` does.

    Parameters
    ----------
    folder : str or path-like
        A folder written by ``partwise simulate --record``, to which all attacks
        are applied; or a party's state folder or ledger, whose chain of hashes is
        verified. Nothing is written.
    data : str or path-like, default=None
        The matrix of the simulation. With None, the path in run.json.
    colluders : int, default=None
        Number of colluding parties. With None, as in the run.
    n_jobs : int, default=None
        Number of threads. With None the value of OMP_NUM_THREADS, else all
        cores; -1 is all cores.

    Returns
    -------
    dict
        The content of ``audit.json``: ``left``, ``findings``, ``recoveries``,
        ``highest_auc``, ``verdict``, ...; for a ledger, what left the party.
    """
    told: dict[str, Any] = json.loads(
        _partwise.audit(
            fspath(folder),
            data=None if data is None else fspath(data),
            colluders=colluders,
            threads=threads(n_jobs),
        )
    )
    return told
