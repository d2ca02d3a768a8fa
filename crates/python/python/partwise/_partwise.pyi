"""The compiled part of the package."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

__version__: str

def program(arguments: list[str]) -> int: ...
def choices() -> dict[str, list[str]]: ...
def fit(
    x: Any,
    w: NDArray[Any],
    v: NDArray[Any],
    *,
    settings: str,
    given: bool,
    missing: str | None,
    weights: Any,
    threads: int | None,
    callback: Callable[[int, int, float, float], bool | None] | None,
) -> str: ...
def transform(
    x: Any,
    w: NDArray[Any],
    v: NDArray[Any],
    *,
    loss: str,
    missing: str | None,
    l1: float,
    l2: float,
    threads: int | None,
) -> None: ...
def select_rank(
    x: Any, *, single: bool, components: list[int], restarts: int, settings: str, threads: int | None
) -> str: ...
def join(
    file: str,
    x: Any,
    *,
    single: bool,
    names: list[str] | None,
    digest: str,
    insecure: bool,
    threads: int | None,
) -> tuple[bytes, bytes, str]: ...
def simulate(
    x: Any, *, single: bool, parties: list[int], protocol: str, rank: int, settings: str
) -> tuple[list[tuple[bytes, bytes]], str]: ...
def audit(path: str, *, data: str | None, colluders: int | None, threads: int | None) -> str: ...
