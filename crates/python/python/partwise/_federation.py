"""Federations: taking part in one, trying one on this machine, and auditing what left its parties."""

import hashlib
import json
from dataclasses import dataclass
from numbers import Integral
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from partwise import _partwise
from partwise._checks import amount, number, readable, threads, unmasked


@dataclass(frozen=True)
class Joined:
    """What a party has at the end: X ≈ U Vᵀ with a row of X for each of its records."""

    U: NDArray[Any]
    """This party's own factor, records x components."""
    V: NDArray[Any]
    """The shared factor, features x components, the same at every party."""
    report: dict[str, Any]


def _checked(X: Any) -> tuple[Any, str]:
    """X as the compiled part reads it, and a digest of it."""
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
    """Takes part in a federation with the rows of X as this party's records, as ``partwise party join`` does.

    ``party`` is the party's ``party.toml``. Names of features are compared with those of the other parties without
    being shown; they are the columns' names of a data frame unless they are given.
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
    """What all parties of a simulated federation would have."""

    U: list[NDArray[Any]]
    """Each party's own factor, records x components, in the order of its records."""
    V: NDArray[Any]
    """The shared factor, features x components."""
    report: dict[str, Any]


def _setting(name: str, value: Any) -> Any:
    """A setting as JSON has it."""
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
    protocol: str = "syn-sd",
    **settings: Any,
) -> Simulated:
    """Runs on this machine what parties would do that keep their records to themselves, as ``partwise simulate`` does.

    ``parties`` is their number, among whom the rows of X are dealt out evenly in their order, or a party's number for
    each row, from 0. ``settings`` are those of the method by their names in ``run.json``: ``rounds``, ``seed``,
    ``tolerance``, ``aggregation``, ..., and risks that are accepted, such as ``pooled_sums_show_records=True``.
    """
    number("n_components", n_components, Integral, 1)
    X, _ = _checked(X)
    records = X.shape[0]
    if np.ndim(parties) == 0:
        number("parties", parties, Integral, 2, 255)
        count = int(parties)  # type: ignore[arg-type]
        # The first ones have one record more where it does not come out even.
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
        settings=json.dumps({name: _setting(name, value) for name, value in settings.items()}),
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
    """What left the parties, and what attackers make of it, as ``partwise audit`` tells.

    Of a folder that ``partwise simulate --record`` wrote, all attacks are run, and the result is what ``audit.json`` has:
    ``left``, ``findings``, ``recoveries``, ``highest_auc``, ``verdict``, ... Nothing is written. ``data`` is the matrix,
    if it is not where the run found it; ``colluders`` how many parties collude, if not as the run had it.

    Of a party's state folder, or its ledger, it is what left that party, after the chain of hashes was checked.
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
