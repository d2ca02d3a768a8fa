"""Larger than memory: 8 GiB dense within 2 GiB, 60 million nonzeros within 256 MiB.

Makes the matrices with a fixed seed in a temporary folder, factorizes them with --memory and, where the machine has
room, in memory; compares the errors, and the peak resident memory with the budget; removes the files. Exits with 1 if
the peak is above 1.25 times the budget or the errors differ by more than 1%.

    python bench/memory.py PARTWISE [--scale 1.0] [--iterations 10] [--folder DIR] [--json FILE]
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from limits import resident_peak

GIB = 1 << 30
MIB = 1 << 20
RANK = 20


def npy_header(file, shape):
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )


def dense(path, scale):
    """262,144 x 8192 float32 (8 GiB): rank 20 and noise."""
    rows, cols = int(262_144 * scale), 8192
    rng = np.random.default_rng(0)
    v = rng.random((RANK, cols), np.float32) ** 4
    with open(path, "wb") as file:
        npy_header(file, (rows, cols))
        for begin in range(0, rows, 4096):
            u = rng.random((min(4096, rows - begin), RANK), np.float32) ** 4
            block = u @ v
            block += 0.2 * rng.random(block.shape, np.float32)
            block.tofile(file)
    return rows, cols


def sparse(path, scale):
    """500,000 x 100,000 with 120 nonzeros a row (60 million): each row has one of 20 topics and common columns."""
    rows, cols, each = int(500_000 * scale), 100_000, 120
    rng = np.random.default_rng(1)
    indices = np.empty((rows, each), np.int32)
    topics = cols // RANK
    for begin in range(0, rows, 10_000):
        count = min(10_000, rows - begin)
        home = rng.integers(0, RANK, (count, 1)) * topics
        # Distinct within a row: even ones of each of 100 stretches of the topic, odd ones of 20 of all columns.
        step = topics // 100
        near = np.arange(100) * step + 2 * (rng.random((count, 100)) ** 2 * (step // 2)).astype(np.int64)
        far = np.arange(20) * topics + 2 * (rng.random((count, 20)) ** 2 * (topics // 2)).astype(np.int64) + 1
        both = np.sort(np.concatenate([home + near, far], axis=1), axis=1)
        indices[begin : begin + count] = both
    values = (1 + rng.poisson(0.7, rows * each)).astype(np.float32)
    offsets = np.arange(0, rows * each + 1, each, dtype=np.int32)
    # The arrays of scipy.sparse.save_npz(compressed=False).
    np.savez(
        path, indices=indices.reshape(-1), indptr=offsets, format=np.array("csr").astype("S"),
        shape=np.array([rows, cols], np.int64), data=values,
    )
    return rows, cols


def run(program, file, out, options):
    begin = time.monotonic()
    process = subprocess.Popen(
        [program, "factorize", file, "--rank", str(RANK), "--algorithm", "hals", "--tolerance", "0", "--quiet"]
        + ["--out", out, *options]
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident_peak(process.pid))
        time.sleep(0.01)
    seconds = time.monotonic() - begin
    if process.returncode:
        sys.exit(f"{file}: partwise ended with {process.returncode}")
    record = json.loads((out / "run.json").read_text())
    shutil.rmtree(out)
    return {
        "error": record["relative_error"], "seconds": seconds, "computing": record["seconds"],
        "waiting": record["phases"]["read"], "peak": peak * 2**20, "streamed": record["streamed"],
    }


def available():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--scale", type=float, default=1.0, help="rows, relative to the full size")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--folder", type=pathlib.Path, help="where there is room for 9 GiB")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures there")
    arguments = parser.parse_args()
    options = ["--iterations", str(arguments.iterations)]
    results, failed = {}, False
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="partwise-memory-") as folder:
        folder = pathlib.Path(folder)
        for name, make, budget, need in [
            ("dense.npy", dense, 2 * GIB, 10 * GIB), ("sparse.npz", sparse, 256 * MIB, 3 * GIB),
        ]:
            file = folder / name
            rows, cols = make(file, arguments.scale)
            budget = int(budget * arguments.scale)
            size = file.stat().st_size
            print(f"{name}: {rows} x {cols}, {size / GIB:.2f} GiB, k = {RANK}, {arguments.iterations} iterations", flush=True)
            streamed = run(arguments.program, file, folder / "out", ["--memory", str(budget), *options])
            how = streamed["streamed"]
            print(f"  --memory {budget / MIB:.0f} MiB: error {streamed['error']:.7f}, peak {streamed['peak'] / MIB:.0f} MiB "
                  f"({streamed['peak'] / budget:.2f} of the budget), {how['passes']} passes, {how['blocks']} blocks of "
                  f"{how['block_bytes'] / MIB:.0f} MiB, {streamed['computing']:.1f} s of iterations "
                  f"({streamed['waiting']:.1f} s of them waiting for the file), {streamed['seconds']:.1f} s in all", flush=True)
            failed |= streamed["peak"] > 1.25 * budget
            results[name] = {"rows": rows, "cols": cols, "bytes": size, "budget": budget, "streamed": streamed}
            if available() > need * arguments.scale:
                whole = run(arguments.program, file, folder / "out", options)
                apart = abs(streamed["error"] / whole["error"] - 1)
                print(f"  in memory: error {whole['error']:.7f} ({apart:.1e} apart), peak {whole['peak'] / MIB:.0f} MiB, "
                      f"{whole['computing']:.1f} s of iterations, {whole['seconds']:.1f} s in all", flush=True)
                failed |= apart > 0.01
                results[name]["whole"] = whole
            else:
                print("  in memory: not enough of it here")
            file.unlink()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
