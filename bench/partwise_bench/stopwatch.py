"""A clock that stops while the error is evaluated, and the error curve."""

import contextlib
import signal
import time

import numpy as np

# The errors to reach are those of scikit-learn's coordinate descent after these iterations.
MILESTONES = [10, 50, 200]

# Seconds between two checks of the cap.
LOOK = 0.25


class Done(Exception):
    """Ends a peer's loop from inside, where its hook is called."""


class Stopwatch:
    """Notes (iteration, seconds, relative error) until an error, a number of iterations or a cap is reached."""

    def __init__(self, error, cap, target=None, iterations=None):
        self.error, self.cap, self.target, self.iterations = error, cap, target, iterations
        self.curve = []
        self.iteration = 0
        self._due = 1
        self._seconds = 0.0
        self._since = None

    def start(self):
        self._since = time.perf_counter()

    def seconds(self):
        return self._seconds + (time.perf_counter() - self._since if self._since is not None else 0.0)

    @contextlib.contextmanager
    def paused(self):
        self._seconds, self._since = self.seconds(), None
        yield
        self._since = time.perf_counter()

    @contextlib.contextmanager
    def capped(self):
        """Ends a run at its cap also in the middle of an iteration, which can take minutes."""

        def look(*_):
            if self._since is not None and self.seconds() >= self.cap:
                raise Done

        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, LOOK, LOOK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def iterated(self, factors):
        """To be called after each iteration; `factors` returns U and V, and is called when they are needed."""
        with self.paused():
            self.iteration += 1
            over = self._seconds >= self.cap or self.iteration == self.iterations
            if over or self.iteration >= self._due or self.iteration in MILESTONES:
                # Every iteration at first, then a twentieth apart: fine enough to interpolate between.
                self._due = self.iteration + max(1, self.iteration // 20)
                error = self.error(*factors())
                self.curve.append((self.iteration, self._seconds, error))
                if over or not np.isfinite(error) or self.target is not None and error <= self.target:
                    raise Done


class RelativeError:
    """||M - U V^T||_F / ||M||_F from products in float32 and sums in float64, the same for every peer."""

    def __init__(self, matrix):
        self.matrix = matrix
        values = matrix.data if hasattr(matrix, "indptr") else matrix
        self.squared_norm = sum_of_products(values, values)

    def __call__(self, u, v):
        grams = [(factor.T @ factor).astype(np.float64) for factor in (u, v)]
        squared = self.squared_norm - 2 * sum_of_products(self.matrix @ v, u) + np.vdot(*grams)
        return float(np.sqrt(max(squared, 0.0) / self.squared_norm))


def sum_of_products(a, b):
    """In float64 without float64 copies of the whole."""
    a, b = (np.ascontiguousarray(x).reshape(-1) for x in (a, b))
    piece = 1 << 20
    return sum(np.dot(a[i : i + piece].astype(np.float64), b[i : i + piece]) for i in range(0, a.size, piece))
