"""Seconds per iteration of hals, k = 100, with 1 and 2 MPI processes of one thread each, measured in turn.

    python3 bench/mpi.py target/release/partwise [--reduction ordered] [MATRIX ...]

Real matrices are looked for in the folder PARTWISE_DATA. Prints the ratio of the medians, and checks that both computed
the same thing.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
WORDS = sys.argv[2:]
ORDERED = ["--reduction", "ordered"] if "--reduction" in WORDS else []
MATRICES = [word for word in WORDS if word.endswith(("gz", "npz"))] or ["mnist.npy.gz", "rcv1.npz"]
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ITERATIONS = int(os.environ.get("ITERATIONS", "10"))
MPIRUN = os.environ.get("MPIRUN", "mpirun")
ASKED_BY_OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(file, ranks, folder):
    """One run's record."""
    out = pathlib.Path(folder) / f"{ranks}"
    words = [MPIRUN, "-n", str(ranks), PROGRAM, "factorize", file, "--rank", "100", "--algorithm", "hals"]
    words += ["--threads", "1", "--tolerance", "0", "--iterations", str(ITERATIONS), "--quiet", "--force", "--out", out, *ORDERED]
    subprocess.run([str(word) for word in words], check=True, env={**os.environ, **ASKED_BY_OPEN_MPI})
    return json.loads((out / "run.json").read_text())


def main():
    for name in MATRICES:
        file = DATA / name
        if not file.exists():
            print(f"{name} is not in {DATA}, skipped")
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds = {1: [], 2: []}
            records = {}
            for _ in range(ROUNDS):
                for ranks in seconds:
                    record = records[ranks] = run(file, ranks, folder)
                    seconds[ranks].append(record["seconds"] / record["iterations"])
            one, two = (statistics.median(seconds[ranks]) for ranks in (1, 2))
            apart = abs(records[1]["relative_error"] - records[2]["relative_error"])
            assert apart <= 1e-5 * records[1]["relative_error"], f"{name}: errors differ by {apart}"
            waiting = max(sum(kind["seconds"] for kind in rank["method"].values()) for rank in records[2]["ranks"])
            print(f"{name}, hals, k = 100, grid {records[2]['grid']}: {1e3 * one:.1f} ms with 1 rank, "
                  f"{1e3 * two:.1f} ms with 2 (of which at most {1e3 * waiting / ITERATIONS:.1f} in collectives), "
                  f"ratio {one / two:.2f}", flush=True)


if __name__ == "__main__":
    main()
