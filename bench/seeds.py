"""`auto` against HALS run to convergence: medians of the final errors over five seeds, on every matrix of PARTWISE_DATA.

    python3 bench/seeds.py target/release/partwise [MATRIX ...]

Writes docs/performance/seeds.md. HALS is stopped where an iteration lowers the error by less than a millionth of itself, or
after 2000 iterations; `auto` as by default.
"""

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
    lines = ["# `auto` against HALS run to convergence\n",
             "Written by `make bench-seeds`. Medians over five seeds of the relative error at the end; the claim is that "
             "`auto` ends within 0.1% of HALS, or below it.\n",
             "| matrix | k | HALS | its iterations | `auto` | its iterations | apart |", "|---|---|---|---|---|---|---|"]
    for matrix in asked:
        runs = {name: [error(program, matrix, seed, options) for seed in SEEDS]
                for name, options in (("hals", CONVERGED), ("auto", []))}
        (hals, slow), (auto, fast) = ([statistics.median(run[part] for run in runs[name]) for part in (0, 1)]
                                      for name in ("hals", "auto"))
        lines.append(f"| `{matrix.split('.')[0]}` | {RANKS[matrix]} | {hals:.6f} | {slow:.0f} | {auto:.6f} | {fast:.0f} | "
                     f"{100 * (auto / hals - 1):+.3f}% |")
        print(lines[-1], flush=True)
    (pathlib.Path(__file__).parent.parent / "docs/performance/seeds.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
