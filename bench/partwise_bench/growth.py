"""How the time of an iteration grows: rows doubled four times, k doubled four times, against operations."""

import dataclasses
import statistics

import numpy as np
import scipy.sparse

from .cases import DATA, FILES, WORK, load, random_start

DATASETS = [data for data in ("mnist", "rcv1") if (DATA / FILES[data]).exists()]
CONTESTANTS = ["partwise hals", "partwise dsanls", "scikit-learn cd"]
DOUBLINGS = 4
K = 20
SMALLEST_K = 10
ITERATIONS = 12
CAP = 40.0


@dataclasses.dataclass(frozen=True)
class Size:
    """A part of a matrix, its first rows, and a rank."""

    data: str
    rows: int
    cols: int
    entries: int
    k: int
    grown: str

    def __str__(self):
        return f"{self.data}-{self.rows}-{self.k}"

    def flops(self, run):
        """Operations of an iteration: two products with M, two Gram matrices and two sweeps."""
        cols, rows = run.get("sketch") or (self.cols, self.rows)
        products = 2 * self.entries * self.k * (cols / self.cols + rows / self.rows)
        grams = 2 * (cols + rows) * self.k**2
        return products + grams + 2 * (self.rows + self.cols) * self.k**2


def sizes(data, doublings=DOUBLINGS):
    matrix = load(DATA / FILES[data])
    whole, cols = matrix.shape
    count = (lambda rows: int(matrix.indptr[rows])) if scipy.sparse.issparse(matrix) else (lambda rows: rows * cols)
    rows = [whole >> (doublings - i) for i in range(doublings + 1)]
    ks = [SMALLEST_K << i for i in range(doublings + 1)]
    return [Size(data, m, cols, count(m), K, "rows") for m in rows] + [
        Size(data, whole, cols, count(whole), k, "k") for k in ks
    ]


def place(size):
    """File and start of a part, written the first time."""
    whole = DATA / FILES[size.data]
    suffix = ".npz" if whole.suffix == ".npz" else ".npy"
    file = WORK / "converted" / f"{size.data}-{size.rows}{suffix}"
    start = WORK / "starts" / f"growth-{size}"
    if not file.exists() or not (start / "V.npy").exists():
        for folder in (file.parent, start):
            folder.mkdir(parents=True, exist_ok=True)
        part = load(whole)[: size.rows]
        if suffix == ".npz":
            scipy.sparse.save_npz(file, part)
        else:
            # Pixels are bytes in the file too.
            np.save(file, part.astype(np.uint8))
        for name, factor in zip("UV", random_start(part, size.k)):
            np.save(start / f"{name}.npy", factor)
    return {"file": str(file), "start": str(start), "k": size.k}


def measure(store, threads, repeats, doublings=DOUBLINGS):
    for repeat in range(repeats):
        for data in DATASETS:
            for size in sizes(data, doublings):
                for contestant in CONTESTANTS:
                    if not store.is_current(contestant, str(size), repeat, None):
                        limits = {"cap": CAP, "iterations": ITERATIONS, "trace_every": 1}
                        run = store.run(contestant, str(size), repeat, threads, **place(size), **limits)
                        print(f"growth, {size}, repeat {repeat + 1}, {contestant}: {seconds_of(run):.5f} s", flush=True)
                        yield


def seconds_of(run):
    """Of an iteration, the median; the first, with caches to fill, counts only where the cap left no other."""
    curve = run["curve"] if len(run["curve"]) > 1 else [(0, 0.0, 1.0), *run["curve"]]
    pairs = zip(curve, curve[1:])
    return statistics.median((after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs)
