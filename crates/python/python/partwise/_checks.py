"""What X, W, H and the parameters must be, and X as the compiled part reads it."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: X is read as it is in one of these types, and converted to the first from any other.
DTYPES = [np.float64, np.float32, np.uint8]

#: Well below what systems allow a process.
MOST_THREADS = 4096


def dtype_of(X: Any) -> type[np.floating[Any]]:
    """What is computed in."""
    return np.float32 if X.dtype == np.float32 else np.float64


def plain(array: Any) -> NDArray[Any]:
    """An array that is aligned, contiguous and of the machine's own byte order: itself, if it is."""
    array = np.asarray(array)
    if array.dtype.byteorder in "<>":
        native = array.dtype.newbyteorder("=")
        # What is little-endian by name may be the machine's own order.
        array = array.view(native) if array.dtype.isnative else array.astype(native)
    if array.flags.aligned and (array.flags.c_contiguous or array.flags.f_contiguous):
        return array
    return np.array(array, order="C")


def indices(array: Any) -> NDArray[Any]:
    """Indices of a sparse matrix, in one of the two types that SciPy uses."""
    array = plain(array)
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def readable(X: Any) -> Any:
    """Return a checked X in a form that the compiled part can read: unchanged if it is contiguous or canonical."""
    if isinstance(X, np.ndarray):
        return plain(X)
    if X.dtype == np.uint8:
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    parts = plain(X.data), indices(X.indices), indices(X.indptr)
    if all(part is own for part, own in zip(parts, (X.data, X.indices, X.indptr))):
        return X
    return Compressed(*parts, X.shape, X.format, X.dtype)


class Compressed(NamedTuple):
    """A sparse matrix of other arrays than SciPy would keep, without a copy."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    shape: tuple[int, int]
    format: str
    dtype: Any


def unmasked(X: Any, name: str = "X") -> Any:
    """X, unless it has masked entries, whose values would be taken for data."""
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise ValueError(
                f"{name} is a masked array with {int(np.ma.count_masked(X))} masked entries, and missing entries "
                f"cannot be factorized; fill them with .filled(value)"
            )
        return X.data
    return X


def checked_factor(factor: Any, shape: tuple[Any, Any], whom: str) -> NDArray[Any]:
    """Check a given W or H, with scikit-learn's error messages."""
    from sklearn.utils import check_array
    from sklearn.utils.validation import check_non_negative

    if factor is None:
        raise ValueError(f"{whom} is missing; give it, or another init")
    factor = check_array(unmasked(factor, whom), dtype=[np.float64, np.float32])
    for side, (expected, got) in zip(("first", "second"), zip(shape, factor.shape)):
        if expected not in ("auto", got):
            raise ValueError(
                f"Array with wrong {side} dimension passed to {whom}. Expected {expected}, but got {got}."
            )
    check_non_negative(factor, whom)
    if factor.max() == 0:
        raise ValueError(f"Array passed to {whom} is full of zeros.")
    return plain(factor)


def checked_weights(X: Any, sample_weight: Any, weights: Any) -> Any:
    """Return the weights of the rows or entries of a checked X for the compiled part; None if all are 1."""
    from sklearn.utils import check_array
    from sklearn.utils.validation import check_non_negative

    if sample_weight is not None and weights is not None:
        raise ValueError("sample_weight and weights cannot be combined; give their product as weights")
    if sample_weight is not None:
        counts = check_array(sample_weight, dtype=dtype_of(X), ensure_2d=False)
        if counts.shape != (X.shape[0],):
            raise ValueError(f"sample_weight has the shape {counts.shape}; give {X.shape[0]} numbers, one for each row")
        check_non_negative(counts.reshape(-1, 1), "NMF (sample_weight)")
        if not counts.any():
            raise ValueError("every sample weight is zero; give at least one positive weight")
        return plain(counts)
    if weights is None:
        return None
    counts = check_array(weights, accept_sparse=("csr", "csc"), dtype=dtype_of(X))
    if counts.shape != X.shape:
        raise ValueError(f"weights have the shape {counts.shape}, but X has {X.shape}; give one for each entry")
    check_non_negative(counts, "NMF (weights)")
    return readable(counts)


def one_of(name: str, value: Any, known: Any) -> None:
    if not (value is None or isinstance(value, str)) or value not in known:
        names = ", ".join(repr(each) for each in known)
        raise ValueError(f"{name} is {value!r}; give one of {names}")


def number(name: str, value: Any, kind: type, low: float, high: float = np.inf, infinite: bool = False) -> None:
    kinds = "an integer" if kind is Integral else "a number" if infinite else "a finite number"
    kind_fits = isinstance(value, kind) and not isinstance(value, (bool, np.bool_))
    if not kind_fits or not low <= value <= high or not (infinite or value < np.inf):  # type: ignore[operator]
        limits = f"of {low} or more" if high == np.inf else f"from {low} to {high}"
        raise ValueError(f"{name} is {value!r}; give {kinds} {limits}")


def finite(value: Any) -> float:
    """A checked number as a float; the largest one for infinity, which JSON does not have."""
    return min(float(value), float(np.finfo(np.float64).max))


def threads(n_jobs: Any) -> int | None:
    """How many threads n_jobs asks for; None for all cores."""
    if n_jobs is None:
        # joblib's workers find in it how many threads each should start.
        given = os.environ.get("OMP_NUM_THREADS", "")
        return int(given) if given.isdecimal() and int(given) > 0 else None
    if not isinstance(n_jobs, Integral) or n_jobs == 0 or n_jobs > MOST_THREADS:
        raise ValueError(
            f"n_jobs is {n_jobs!r}; give a number of threads up to {MOST_THREADS}, or -1 for all cores"
        )
    if n_jobs == -1:
        return None
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def amount(name: str, value: Any) -> dict[str, Any] | None:
    """A number of rows or columns, or a share of them."""
    if value is None:
        return None
    if isinstance(value, Integral):
        number(name, value, Integral, 1)
        return {"Count": int(value)}
    number(name, value, Real, 0, 1)
    return {"Share": float(value)}
