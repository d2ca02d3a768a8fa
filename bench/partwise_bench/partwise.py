"""Partwise as a user runs it: a process that reads a file and writes a folder."""

import csv
import json
import shutil
import subprocess
import tempfile
import time

from .cases import PROGRAM, WORK


def run(file, k, threads, start, options=(), target=None, cap=120.0, iterations=10**9):
    """Curve, and seconds of the whole process. The clock of the curve begins when the matrix has been read."""
    WORK.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(dir=WORK)
    stop = [] if target is None else ["--target-error", repr(target)]
    command = [PROGRAM, "factorize", file, "--rank", k, "--threads", threads, "--init-from", start, "--out", folder]
    command += ["--force", "--quiet", "--tolerance", 0, "--iterations", iterations, "--time-limit", cap]
    try:
        begin = time.perf_counter()
        done = subprocess.run([str(word) for word in [*command, *stop, *options]], capture_output=True, text=True)
        process = time.perf_counter() - begin
        if done.returncode:
            return {"failed": done.stderr.strip()}
        with open(f"{folder}/run.json") as stream:
            record = json.load(stream)
        with open(f"{folder}/trace.csv") as stream:
            lines = list(csv.DictReader(stream))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # What is done before the first iteration is computing too: transposing, sums, start values.
    before = record["phases"]["start"]
    curve = [
        (int(line["iteration"]), before + float(line["seconds"]), float(line["relative_error"]))
        for line in lines
        if int(line["iteration"]) > 0
    ]
    sketch = [record["sketch_cols"], record["sketch_rows"]] if record["sketch"] else None
    if not curve:
        return {"failed": f"did not evaluate an error in {cap:.3g} s"}
    ended = curve[-1][1]
    return {"curve": curve, "ended": ended, "process": process, "algorithm": record["algorithm"], "sketch": sketch}
