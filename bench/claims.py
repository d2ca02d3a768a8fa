"""The paper's claims on general NMF (Sec. 5.3), measured: writes docs/performance/claims.csv and claims-solvers.csv.

    python3 bench/claims.py target/release/partwise [--cap 12] [--out docs/performance]

Every method from the same random start, two in-process nodes with a thread each, default parameters. Errors to reach are
those of HALS after 5, 20 and 50 iterations (fewer where the cap ends it); a field is empty where a method did not reach
the error. A rise is an evaluation with a higher error than the one before. Real matrices are looked for in PARTWISE_DATA.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import tempfile

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
MATRICES = {"boats": "boats.zip", "face": "face.npy.gz", "mnist": "mnist.npy.gz", "rcv1": "rcv1.npz", "dblp": "dblp.npz"}
METHODS = {
    "HALS": ["--algorithm", "hals"],
    "DSANLS/S": ["--algorithm", "dsanls", "--sketch", "subsample"],
    "DSANLS/G": ["--algorithm", "dsanls", "--sketch", "gaussian"],
    "MU": ["--algorithm", "mu"],
    "ANLS/BPP": ["--algorithm", "bpp"],
    "auto": ["--algorithm", "auto"],
}
# As in the paper, Gaussian sketches only where M is not too large.
TOO_LARGE = {("rcv1", "DSANLS/G"), ("dblp", "DSANLS/G")}
MILESTONES = [5, 20, 50]


class Runner:
    def __init__(self, program, cap):
        self.program, self.cap = program.resolve(), cap

    def run(self, matrix, k, options, *more, iterations=10**6):
        """The curve, as (iteration, seconds, error), and the record of the run."""
        with tempfile.TemporaryDirectory() as folder:
            words = [self.program, "factorize", DATA / MATRICES[matrix], "--rank", k, "--nodes", 2, "--threads", 1]
            words += ["--tolerance", 0, "--iterations", iterations, "--time-limit", self.cap, "--quiet"]
            words += ["--out", f"{folder}/out", *options, *more]
            subprocess.run([str(word) for word in words], check=True)
            record = json.loads(pathlib.Path(f"{folder}/out/run.json").read_text())
            with open(f"{folder}/out/trace.csv") as stream:
                lines = list(csv.DictReader(stream))
        return [(int(l["iteration"]), float(l["seconds"]), float(l["relative_error"])) for l in lines], record


def reached(curve, error, column=1):
    """When a curve first has an error: seconds (1) or iterations (0); None if never."""
    return next((point[column] for point in curve if point[2] <= error), None)


def rises(curve):
    return sum(after[2] > before[2] for before, after in zip(curve, curve[1:]))


def write(file, header, rows):
    with open(file, "w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    print(f"written to {file}")


def compare(runner, matrix, k):
    """One row for each method, for one matrix and number of components."""
    hals, _ = runner.run(matrix, k, METHODS["HALS"], iterations=MILESTONES[-1])
    marks = [min(mark, hals[-1][0]) for mark in MILESTONES]
    errors = [next(error for iteration, _, error in hals if iteration == mark) for mark in marks]
    rows = []
    for name, options in METHODS.items():
        if (matrix, name) in TOO_LARGE:
            continue
        curve, record = runner.run(matrix, k, options, "--target-error", repr(errors[-1]))
        done = max(curve[-1][0], 1)
        sent = sum(kind["bytes"] for kind in record["ranks"][0]["method"].values()) / done
        row = [matrix, k, name]
        for mark, error in zip(marks, errors):
            seconds = reached(curve, error)
            row += [mark, f"{error:.5f}", "" if seconds is None else f"{seconds:.2f}"]
        row += [f"{1e3 * curve[-1][1] / done:.2f}", f"{sent / 1e3:.1f}", done, rises(curve), f"{curve[-1][2]:.5f}"]
        rows.append(row)
        print(row, flush=True)
    return rows


def solvers(runner, matrix, k):
    """PCD against PGD by iterations, one row for each sketch and solver."""
    rows = []
    for sketch in ["subsample", "gaussian"]:
        if sketch == "gaussian" and (matrix, "DSANLS/G") in TOO_LARGE:
            continue
        for solver in ["pcd", "pgd"]:
            words = ["--algorithm", "dsanls", "--sketch", sketch, "--solver", solver, "--trace-every", 1]
            curve, _ = runner.run(matrix, k, words, iterations=200)
            at = {iteration: error for iteration, _, error in curve}
            rows.append([matrix, k, sketch, solver, *(f"{at[i]:.5f}" if i in at else "" for i in (10, 50, 100, 200))])
            print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--cap", type=float, default=12.0, help="seconds of computing per run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/performance"))
    asked = parser.parse_args()
    runner = Runner(asked.program, asked.cap)
    here = [name for name, file in MATRICES.items() if (DATA / file).exists()]
    cases = [(matrix, 100) for matrix in here] + [("rcv1", k) for k in (20, 50, 200, 500) if "rcv1" in here]
    header = ["matrix", "k", "method"]
    header += [f"{column}_{n}" for n in (1, 2, 3) for column in ("hals_iterations", "error", "seconds")]
    header += ["milliseconds_per_iteration", "kilobytes_per_iteration", "iterations", "rises", "final_error"]
    write(asked.out / "claims.csv", header, [row for matrix, k in cases for row in compare(runner, matrix, k)])
    header = ["matrix", "k", "sketch", "solver", "error_10", "error_50", "error_100", "error_200"]
    with_solvers = [name for name in ("face", "mnist", "rcv1") if name in here]
    write(asked.out / "claims-solvers.csv", header, [row for matrix in with_solvers for row in solvers(runner, matrix, 100)])


if __name__ == "__main__":
    main()
