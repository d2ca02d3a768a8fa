"""Predictions of `partwise plan` against measured iterations, with 1 and 2 processes of one thread.

    python3 bench/plan.py target/release/partwise FOLDER [--part calibrate|MATRIX ...] [--report FILE]

Calibrates the machine twice, alone and under `mpirun -n 2`, without having seen a matrix; then measures real iterations,
three runs each in turns. The median iteration of all of them counts; the shortest is shown beside it. What was measured is
kept in FOLDER, so that parts can be run one by one; the machine should do nothing else meanwhile. Real matrices are looked for in the folder PARTWISE_DATA. The program must be built with MPI.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
# File, rows, columns, nonzeros of a sparse one.
MATRICES = {"mnist": ("mnist.npy.gz", 70000, 784, None), "rcv1": ("rcv1.npz", 27613, 47236, 2144845),
            "dblp": ("dblp.npz", 326186, 326186, 1615400)}
RANKS = [20, 100]
METHODS = ["hals", "auto", "dsanls"]
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ITERATIONS = int(os.environ.get("ITERATIONS", "6"))
MPIRUN = os.environ.get("MPIRUN", "mpirun")
ASKED_BY_OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Within so much of what was measured.
BOUND = 0.3


def call(program, ranks, *words):
    words = ([MPIRUN, "-n", ranks, "--oversubscribe"] if ranks > 1 else []) + [program, *words]
    # Nobody's own constants.
    env = {**os.environ, **ASKED_BY_OPEN_MPI, "XDG_CONFIG_HOME": "/nonexistent"}
    return subprocess.run([str(word) for word in words], check=True, env=env, capture_output=True, text=True).stdout


def iterations(program, name, k, method, ranks):
    """Seconds of each iteration, the first left out."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result"
        call(program, ranks, "factorize", DATA / MATRICES[name][0], "--rank", k, "--algorithm", method, "--threads", 1,
             "--iterations", ITERATIONS, "--tolerance", 0, "--trace-every", 1, "--quiet", "--out", out)
        with open(out / "trace.csv") as file:
            times = [float(line["seconds"]) for line in csv.DictReader(file)]
    return [after - before for before, after in zip(times[1:], times[2:])]


def measure(program, name):
    found = {}
    for _ in range(ROUNDS):
        for k in RANKS:
            for method in METHODS:
                for ranks in (1, 2):
                    found.setdefault(f"{k} {method} {ranks}", []).extend(iterations(program, name, k, method, ranks))
    return found


def predict(program, folder, name, k, method, ranks):
    _, rows, cols, nonzeros = MATRICES[name]
    words = ["plan", "--rows", rows, "--cols", cols, "--rank", k, "--nodes", ranks, "--json"]
    words += ["--constants", folder / f"constants-{ranks}.json"] + (["--nonzeros", nonzeros] if nonzeros else ["--bytes"])
    answer = json.loads(call(program, 1, *words))
    return next(found for found in answer["methods"] if found["method"] == method)


def report(program, folder):
    """CSV with the seconds per iteration that `partwise plan` predicts and those that were measured, and a summary in words."""
    rows = [["matrix", "k", "method", "processes", "predicted_seconds", "median_seconds", "shortest_seconds"]]
    within = 0
    for name in MATRICES:
        file = folder / f"{name}.json"
        if not file.exists():
            continue
        for case, times in json.loads(file.read_text()).items():
            k, method, ranks = case.split()
            predicted = predict(program, folder, name, int(k), method, int(ranks))["seconds"]
            median = statistics.median(times)
            within += abs(predicted / median - 1) <= BOUND
            rows.append([name, k, method, ranks, *(f"{value:.4f}" for value in (predicted, median, min(times)))])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue(), f"{within} of {len(rows) - 1} predictions are within {BOUND:.0%} of the median"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--part", nargs="*", default=["calibrate", *MATRICES])
    parser.add_argument("--report", type=pathlib.Path)
    words = parser.parse_args()
    program = words.program.resolve()
    words.folder.mkdir(parents=True, exist_ok=True)
    for part in words.part:
        if part == "calibrate":
            for ranks in (1, 2):
                call(program, ranks, "calibrate", "--threads", 1, "--force", "--out", words.folder / f"constants-{ranks}.json")
        elif (DATA / MATRICES[part][0]).exists():
            (words.folder / f"{part}.json").write_text(json.dumps(measure(program, part)))
        else:
            print(f"{part} is not in {DATA}, left out")
    text, summary = report(program, words.folder)
    print(text + summary)
    if words.report:
        words.report.write_text(text)


if __name__ == "__main__":
    main()
