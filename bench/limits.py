"""How close iterations are to their lower bounds: writes docs/performance/limits-*.csv.

    bench/.venv/bin/python bench/limits.py target/release/partwise

Shares of an iteration by the program's own timers, threads and nodes, peak memory, and sparse products against SciPy's.
Runs that are compared take turns; the best of three counts. Real matrices are looked for in PARTWISE_DATA.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
FILES = {"mnist": "mnist.npy.gz", "boats": "boats.zip", "rcv1": "rcv1.npz", "newsgroups": "newsgroups.npz"}
ROUNDS = 3


def run(program, matrix, k, iterations, *options):
    """The record of a run, with its peak memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "factorize", DATA / FILES[matrix], "--rank", k, "--iterations", iterations, "--tolerance", 0]
        words += ["--trace-every", iterations, "--quiet", "--out", f"{folder}/out", *options]
        process = subprocess.Popen([str(word) for word in words])
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_peak(process.pid))
            time.sleep(0.01)
        if process.returncode:
            raise SystemExit(f"{words} failed")
        record = json.loads(pathlib.Path(f"{folder}/out/run.json").read_text())
    phases = record["phases"]
    record["each"] = record["seconds"] / record["iterations"]
    record["kernels"] = {name: phases[name] / record["iterations"] for name in ("product", "solve", "sketch")}
    record["peak"] = peak
    return record


def resident_peak(pid):
    """MiB. (What wait4 tells of a child counts this process too, as it was before the child's own program began.)"""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0].split()[1]) / 1024 if found else 0


def best(program, cases):
    """The fastest of several runs of each case, in turns."""
    found = {}
    for _ in range(ROUNDS):
        for name, case in cases.items():
            record = run(program, *case)
            if name not in found or record["each"] < found[name]["each"]:
                found[name] = record
    return found


def iterations(program):
    """The floor of `hals` is its two products and two Gram matrices; that of `dsanls` its sampled products and sweeps."""
    cases = {("mnist", 20, "hals"): ("mnist", 20, 20, "--algorithm", "hals", "--threads", 2),
             ("mnist", 100, "hals"): ("mnist", 100, 8, "--algorithm", "hals", "--threads", 2)}
    for matrix in FILES:
        for share in ("10%", "1%"):
            words = ["--algorithm", "dsanls", "--sketch-cols", share, "--sketch-rows", share, "--threads", 2]
            cases[matrix, 20, f"dsanls, {share}"] = (matrix, 20, 100, *words)
    rows = []
    for (matrix, k, name), record in best(program, cases).items():
        kernels = record["kernels"]
        floor = kernels["product"] + (kernels["solve"] if name != "hals" else 0.0)
        rows.append([matrix, k, name, *(f"{1e3 * part:.2f}" for part in (record["each"], *kernels.values())),
                     f"{record['each'] / floor:.2f}"])
    return ["matrix", "k", "method", "iteration_ms", "product_ms", "sweep_ms", "sketch_ms", "ratio_to_floor"], rows


def scaling(program):
    rows = []
    for matrix, k, count in [("mnist", 20, 15), ("mnist", 100, 6), ("rcv1", 20, 40), ("rcv1", 100, 10)]:
        head = (matrix, k, count, "--algorithm", "hals")
        found = best(program, {"one": (*head, "--threads", 1), "threads": (*head, "--threads", 2),
                               "nodes": (*head, "--nodes", 2, "--threads", 1)})
        one = found["one"]["each"]
        rows.append([matrix, k, f"{1e3 * one:.1f}", *(f"{one / found[name]['each']:.2f}" for name in ("threads", "nodes"))])
    return ["matrix", "k", "one_thread_ms", "speedup_two_threads", "speedup_two_workers"], rows


def memory(program):
    """The aim of an exact method is 1.15 x (stored matrix + 2 x factors) + 64 MiB, that of `dsanls` 2.2 x the matrix."""
    rows = []
    sizes = {"mnist": 70000 * 784, "rcv1": 2 * (8 * 2144845) + 8 * (27613 + 47236), "newsgroups": 2 * 8 * 1687590 + 8 * 45060}
    sides = {"mnist": 70784, "rcv1": 27613 + 47236, "newsgroups": 18846 + 26214}
    for matrix, stored in sizes.items():
        factors = 4 * 20 * sides[matrix]
        for name, bound, words in [
            ("hals", 1.15 * (stored + 2 * factors) / 2**20 + 64, ["--algorithm", "hals"]),
            ("dsanls", 2.2 * stored / 2**20, ["--algorithm", "dsanls"]),
        ]:
            record = run(program, matrix, 20, 5, *words, "--threads", 1)
            rows.append([matrix, name, f"{stored / 2**20:.0f}", f"{record['peak']:.0f}", f"{bound:.0f}"])
    return ["matrix", "method", "stored_mib", "peak_mib", "aim_mib"], rows


def sparse(program):
    """Both products of an iteration, M V and Mᵀ U, ours with the two Gram matrices. Bytes are those of the entries and of the k
    numbers that each of them asks for, most of which come from caches."""
    rows = []
    for matrix in ("rcv1", "newsgroups"):
        csr = scipy.sparse.csr_matrix(scipy.sparse.load_npz(DATA / FILES[matrix]), dtype=np.float32)
        turned = csr.T.tocsr()
        for k in (20, 100):
            random = np.random.default_rng(0)
            v, u = (random.random((side, k), dtype=np.float32) for side in csr.shape[::-1])
            theirs, ours = [], []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                for _ in range(5):
                    csr @ v, turned @ u
                theirs.append((time.perf_counter() - begin) / 5)
                record = run(program, matrix, k, 10, "--algorithm", "hals", "--threads", 1)
                ours.append(record["kernels"]["product"])
            traffic = 2 * csr.nnz * (4 * k + 8)
            rows.append([matrix, k, f"{1e3 * min(theirs):.1f}", f"{1e3 * min(ours):.1f}",
                         f"{min(theirs) / min(ours):.2f}", f"{traffic / min(ours) / 1e9:.1f}"])
    return ["matrix", "k", "scipy_ms", "partwise_ms", "ratio", "gigabytes_per_second"], rows


def copy_rate():
    source = np.ones(1 << 27, dtype=np.float32)
    target = np.empty_like(source)
    best_of = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        best_of.append(time.perf_counter() - begin)
    return f"A plain copy of 512 MiB moves {2 * source.nbytes / min(best_of) / 1e9:.1f} GB/s here, reading and writing, one thread.\n"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(__file__).parent.parent / "docs/performance"
    for part in (iterations, scaling, sparse, memory):
        header, rows = part(program)
        with open(folder / f"limits-{part.__name__}.csv", "w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([header, *rows])
        print(part.__name__, header, *rows, sep="\n", flush=True)
    print(copy_rate())


if __name__ == "__main__":
    main()
