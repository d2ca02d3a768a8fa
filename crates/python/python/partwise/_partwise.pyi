"""The compiled part of the package."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

__version__: str

def fit(
    x: Any,
    w: NDArray[Any],
    v: NDArray[Any],
    *,
    settings: str,
    given: bool,
    threads: int | None,
    callback: Callable[[int, int, float, float], bool | None] | None,
) -> str: ...
def transform(
    x: Any,
    w: NDArray[Any],
    v: NDArray[Any],
    *,
    l1: float,
    l2: float,
    threads: int | None,
) -> None: ...
