"""What X, W, H and the parameters must be, and X as the compiled part reads it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative

#: X is read as it is in one of these types, and converted to the first from any other.
DTYPES = [np.float64, np.float32, np.uint8]


def dtype_of(X: Any) -> type[np.floating[Any]]:
    """What is computed in."""
    return np.float32 if X.dtype == np.float32 else np.float64


def readable(X: Any) -> Any:
    """X as the compiled part can read it: itself, where it is contiguous or canonical."""
    if isinstance(X, np.ndarray):
        X = np.asarray(X)
        if X.flags.aligned and (X.flags.c_contiguous or X.flags.f_contiguous):
            return X
        return np.array(X, order="C")
    if X.dtype == np.uint8:
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def checked_factor(factor: Any, shape: tuple[Any, Any], whom: str) -> NDArray[Any]:
    """A given W or H, in scikit-learn's words where it is wrong."""
    if factor is None:
        raise ValueError(f"{whom} is missing; give it, or another init")
    factor = check_array(factor, dtype=[np.float64, np.float32])
    for side, (expected, got) in zip(("first", "second"), zip(shape, factor.shape)):
        if expected not in ("auto", got):
            raise ValueError(
                f"Array with wrong {side} dimension passed to {whom}. Expected {expected}, but got {got}."
            )
    check_non_negative(factor, whom)
    if factor.max() == 0:
        raise ValueError(f"Array passed to {whom} is full of zeros.")
    return np.asarray(factor)


def one_of(name: str, value: Any, known: Any) -> None:
    if not (value is None or isinstance(value, str)) or value not in known:
        names = ", ".join(repr(each) for each in known)
        raise ValueError(f"{name} is {value!r}; give one of {names}")


def number(name: str, value: Any, kind: type, low: float, high: float = np.inf) -> None:
    kinds = "an integer" if kind is Integral else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind) or not low <= value <= high:  # type: ignore[operator]
        limits = f"of {low} or more" if high == np.inf else f"from {low} to {high}"
        raise ValueError(f"{name} is {value!r}; give {kinds} {limits}")


def amount(name: str, value: Any) -> dict[str, Any] | None:
    """A number of rows or columns, or a share of them."""
    if value is None:
        return None
    if isinstance(value, Integral):
        number(name, value, Integral, 1)
        return {"Count": int(value)}
    number(name, value, Real, 0, 1)
    return {"Share": float(value)}
