"""`auto` against HALS run to convergence: medians of the final errors over five seeds, on every matrix of PARTWISE_DATA.

    python3 bench/seeds.py target/release/partwise [MATRIX ...]

Writes docs/performance/seeds.csv. HALS is stopped where an iteration lowers the error by less than a millionth of itself, or
after 2000 iterations; `auto` as by default.
"""

import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
RANKS = {
    "pcawg.npy.gz": 8, "samson.npy.gz": 3, "golub.npy.gz": 10, "mimic.npz": 10, "movielens.npz": 20, "face.npy.gz": 20,
    "newsgroups.npz": 20, "pbmc3k.npz": 20, "rcv1.npz": 20, "mnist.npy.gz": 20, "dblp.npz": 20, "boats.zip": 20,
}
SEEDS = range(5)
CONVERGED = ["--algorithm", "hals", "--tolerance", "1e-6", "--iterations", "2000"]


def error(program, matrix, seed, options):
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "factorize", DATA / matrix, "--rank", RANKS[matrix], "--seed", seed, "--quiet"]
        subprocess.run([str(word) for word in [*words, "--out", f"{folder}/out", *options]], check=True)
        record = json.loads(pathlib.Path(f"{folder}/out/run.json").read_text())
    return record["relative_error"], record["iterations"]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    asked = sys.argv[2:] or [name for name in RANKS if (DATA / name).exists()]
    rows = [["matrix", "k", "hals_error", "hals_iterations", "auto_error", "auto_iterations", "difference_percent"]]
    for matrix in asked:
        runs = {name: [error(program, matrix, seed, options) for seed in SEEDS]
                for name, options in (("hals", CONVERGED), ("auto", []))}
        (hals, slow), (auto, fast) = ([statistics.median(run[part] for run in runs[name]) for part in (0, 1)]
                                      for name in ("hals", "auto"))
        rows.append([matrix.split(".")[0], RANKS[matrix], f"{hals:.6f}", f"{slow:.0f}", f"{auto:.6f}", f"{fast:.0f}",
                     f"{100 * (auto / hals - 1):+.3f}"])
        print(rows[-1], flush=True)
    with open(pathlib.Path(__file__).parent.parent / "docs/performance/seeds.csv", "w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
