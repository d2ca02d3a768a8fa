"""Compares the times of the same factorization from the command line and from Python, in turn.

    python bench/python_path.py [--rounds 3] [--iterations 30] [--data FOLDER] [--program PARTWISE]

For each matrix (mnist and rcv1, rank 20, f32, random start, seed 0) prints the median seconds of computing of
`partwise factorize`, as run.json has them, those that the trace of `NMF.fit` has, the seconds of the whole call of
`NMF.fit`, which adds checks, start, final solution for W and error, and the ratios to the first.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import warnings

import numpy as np
import scipy.sparse as sp

from partwise import NMF

RANK = 20


def load(folder, name):
    if name == "mnist":
        with gzip.open(folder / "mnist.npy.gz") as file:
            return np.load(file), np.float32
    return sp.load_npz(folder / "rcv1.npz").astype(np.float32), np.float32


def command_line(program, file, iterations, out):
    subprocess.run(
        [program, "factorize", file, "--rank", str(RANK), "--algorithm", "hals", "--iterations", str(iterations),
         "--tolerance", "0", "--out", out, "--force", "--quiet"],
        check=True,
    )
    record = json.loads((out / "run.json").read_text())
    return record["seconds"], record["relative_error"]


def python(X, iterations):
    model = NMF(RANK, init="random", solver="hals", tol=0, max_iter=iterations, random_state=0)
    begin = time.perf_counter()
    model.fit(X)
    whole = time.perf_counter() - begin
    return model.trace_["seconds"][-1], whole, model.trace_["relative_error"][-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("PARTWISE_DATA", "../shared/data"))
    parser.add_argument("--program", default=os.environ.get("PARTWISE_BIN", "target/release/partwise"))
    parser.add_argument("--matrix", choices=["mnist", "rcv1"], action="append")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'matrix':8} {'program':>9} {'fit, same':>10} {'fit, whole':>11} {'same/prog':>10} {'whole/prog':>11}")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name in args.matrix or ["mnist", "rcv1"]:
            X, dtype = load(args.data, name)
            # The program computes bytes in f32, Python in float64: both get the same f32.
            X = X.astype(dtype)
            file = scratch / (f"{name}.npz" if sp.issparse(X) else f"{name}.npy")
            sp.save_npz(file, X) if sp.issparse(X) else np.save(file, X)
            rows = []
            for _ in range(args.rounds):
                seconds, error = command_line(args.program, file, args.iterations, scratch / "out")
                same, whole, python_error = python(X, args.iterations)
                assert abs(error - python_error) < 1e-5, (error, python_error)
                rows.append((seconds, same, whole))
            program, same, whole = (statistics.median(column) for column in zip(*rows))
            print(f"{name:8} {program:9.3f} {same:10.3f} {whole:11.3f} {same / program:10.3f} {whole / program:11.3f}")


if __name__ == "__main__":
    main()
