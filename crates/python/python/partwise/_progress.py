"""Progress reports of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Progress(NamedTuple):
    """The progress of a run, which ``callback`` receives after every iteration."""

    restart: int
    """The number of the run out of ``n_init``, from 0."""
    iteration: int
    """Number of iterations so far."""
    relative_error: float
    """The last relative error, ‖X − W H‖ / ‖X‖ in Frobenius norms."""
    seconds: float
    """Seconds of computing so far in this run."""


Callback = Callable[[Progress], object]


class Line:
    """A progress line on stderr, updated at most ten times per second."""

    def __init__(self, max_iter: int, n_init: int) -> None:
        self.max_iter, self.n_init = max_iter, n_init
        self.written, self.width = 0.0, 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.written < 0.1:
            return
        self.written = now
        run = f"run {progress.restart + 1}/{self.n_init}, " if self.n_init > 1 else ""
        text = (
            f"{run}iteration {progress.iteration}/{self.max_iter}, "
            f"error {progress.relative_error:.6f}, {progress.seconds:.1f} s"
        )
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def close(self) -> None:
        """Clear the line."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


class Lines:
    """Prints a line on stdout every ten iterations, for ``verbose``."""

    def __call__(self, progress: Progress) -> None:
        if progress.iteration % 10 == 0:
            print(
                f"iteration {progress.iteration}: relative error {progress.relative_error:.6f}, "
                f"{progress.seconds:.3f} s"
            )


def joined(watchers: list[Callback]) -> Callable[[int, int, float, float], bool] | None:
    """Combine callbacks into one for the compiled part, which returns true to stop: any callback can stop the run."""
    if not watchers:
        return None

    def call(*numbers: float) -> bool:
        progress = Progress(*numbers)  # type: ignore[arg-type]
        answers = [watch(progress) for watch in watchers]
        # Other values are no answer: None, or what the last call in a callback happened to return.
        return any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers)

    return call
