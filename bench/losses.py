"""Processor time to the Kullback-Leibler divergence that scikit-learn's `mu` has after 50 and 500 iterations.

Both start from the same factors, use float32 and one thread, and take turns. For Partwise the time of a run of one iteration,
with start, reading and writing, is subtracted. Prints a line of CSV for each case: the median ratio over repeats.
"""

import argparse
import gzip
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import scipy.sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", pathlib.Path(__file__).resolve().parents[2] / "shared/data"))


def words(documents=6000, vocabulary=8000, topics=20):
    """Word counts of a topic model with word frequencies like those of a language."""
    rng = np.random.default_rng(0)
    frequencies = 1 / np.arange(1, vocabulary + 1)
    frequencies *= 0.02 * vocabulary / frequencies.sum()
    of_topics = np.array([rng.dirichlet(frequencies + 1e-3) for _ in range(topics)])
    model = rng.dirichlet(np.full(topics, 0.1), documents) @ of_topics
    rows = [
        scipy.sparse.csr_matrix(rng.multinomial(20 + rng.poisson(120), row / row.sum()).astype(np.float32))
        for row in model
    ]
    return scipy.sparse.vstack(rows).tocsr()


def pcawg():
    return np.load(gzip.open(DATA / "pcawg.npy.gz")).astype(np.float32)


def pbmc3k():
    return scipy.sparse.load_npz(DATA / "pbmc3k.npz").tocsr().astype(np.float32)


MATRICES = {"pcawg": pcawg, "words": words, "pbmc3k": pbmc3k}


def relative_divergence(M, U, V):
    """The divergence from U Vᵀ over that from the best constant."""
    entries = scipy.sparse.coo_matrix(M)
    m, model = entries.data.astype(float), np.empty(entries.nnz)
    for begin in range(0, entries.nnz, 200_000):
        part = slice(begin, begin + 200_000)
        model[part] = np.einsum("ij,ij->i", U[entries.row[part]].astype(float), V[entries.col[part]].astype(float))
    total, mass = U.sum(0).astype(float) @ V.sum(0).astype(float), m.sum()
    loss = (m * np.log(m / np.maximum(model, 1e-12))).sum() - mass + total
    return loss / ((m * np.log(m)).sum() - mass * np.log(mass / np.prod(M.shape)))


def partwise(program, file, folder, k, *options):
    """Processor time and iterations of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        program, "factorize", file, "--rank", k, "--loss", "kl", "--threads", 1, "--init-from", folder / "start",
        "--tolerance", 0, "--quiet", "--force", "--out", folder / "out", *options,
    ]
    subprocess.run([str(word) for word in command], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, json.loads((folder / "out/run.json").read_text())["iterations"]


def compare(program, M, file, folder, k, iterations):
    """Seconds of scikit-learn and of Partwise, and iterations of Partwise."""
    rng, level = np.random.default_rng(1), np.sqrt(M.mean() / k)
    U, V = ((level * rng.uniform(0.1, 1.9, (length, k))).astype(np.float32) for length in M.shape)
    (folder / "start").mkdir(exist_ok=True)
    np.save(folder / "start/U.npy", U)
    np.save(folder / "start/V.npy", V)
    model = NMF(k, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=iterations, tol=0)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = model.fit_transform(M, W=U, H=np.ascontiguousarray(V.T))
    theirs = time.process_time() - begin
    target = relative_divergence(M, W, model.components_.T)
    one, _ = partwise(program, file, folder, k, "--iterations", 1)
    ours, count = partwise(program, file, folder, k, "--iterations", 3000, "--target-error", target)
    return theirs, (ours - one) * count / max(count - 1, 1), count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--matrices", nargs="*", default=list(MATRICES), choices=list(MATRICES))
    parser.add_argument("--iterations", nargs="*", type=int, default=[50, 500])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print("matrix,k,iterations of mu,seconds of mu,iterations,seconds,ratio")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for matrix in arguments.matrices:
            M = MATRICES[matrix]()
            file = folder / (matrix + (".npz" if scipy.sparse.issparse(M) else ".npy"))
            scipy.sparse.save_npz(file, M, compressed=False) if scipy.sparse.issparse(M) else np.save(file, M)
            for k in (10, 20, 50):
                for iterations in arguments.iterations:
                    runs = [
                        compare(arguments.program, M, file, folder, k, iterations) for _ in range(arguments.repeats)
                    ]
                    theirs, ours = (statistics.median(run[place] for run in runs) for place in (0, 1))
                    ratio = statistics.median(ours / theirs for theirs, ours, _ in runs)
                    line = (matrix, k, iterations, f"{theirs:.3g}", runs[0][2], f"{ours:.3g}", f"{ratio:.2g}")
                    print(*line, sep=",", flush=True)


if __name__ == "__main__":
    main()
