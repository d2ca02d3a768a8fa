"""Raw results, one JSON line per run, so that tables can be redrawn without running anything."""

import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys

from .cases import PROGRAM, ROOT, WORK
from .contestants import package
from .load import Others, is_disturbed

# Runs end after this many seconds of computing.
CAP = 120.0


@functools.cache
def version(contestant):
    """What was run: a package's version, or a digest of the program."""
    if found := package(contestant):
        return version_of_package(found)
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:12]


def version_of_package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


class Store:
    """The last line for a key counts. `asked` is all that decides what comes out, but for the program."""

    def __init__(self, name, redo_disturbed=False):
        self.redo_disturbed = redo_disturbed
        self.file = WORK / f"{name}.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.runs = {}
        for run in map(json.loads, lines):
            self.runs[self.key(**run["asked"])] = run

    def forget(self):
        self.file.unlink(missing_ok=True)
        self.runs = {}

    @staticmethod
    def key(contestant, case, repeat, **_):
        return contestant, case, repeat

    def get(self, contestant, case, repeat):
        return self.runs.get((contestant, case, repeat))

    def is_current(self, contestant, case, repeat, target):
        """Whether a run need not be made: there is one of this version, for this error, undisturbed if that is asked."""
        run = self.get(contestant, case, repeat)
        if not run or self.redo_disturbed and is_disturbed(run):
            return False
        return run["version"] == version(contestant) and run["asked"].get("target") == target

    def run(self, contestant, case, repeat, threads, **asked):
        """Runs it in a process of its own and keeps the result."""
        job = {"contestant": contestant, "threads": threads, **asked}
        variables = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
        environment = {**os.environ, **dict.fromkeys(variables, str(threads)), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", "partwise_bench.one_run", json.dumps(job)]
        others = Others()
        done = subprocess.run(command, cwd=ROOT / "bench", env=environment, stdout=subprocess.PIPE, text=True)
        # A peer that the system killed, for want of memory, has failed; a Ctrl-C never comes here.
        result = json.loads(done.stdout) if done.returncode == 0 else {"failed": f"ended by {done.returncode}"}
        run = {
            "asked": {"contestant": contestant, "case": case, "repeat": repeat, "threads": threads}
            | {name: value for name, value in asked.items() if name not in ("file", "start")},
            "version": version(contestant),
            "at": datetime.datetime.now().isoformat(timespec="seconds"),
            "others": round(others.cores(), 3),
            **result,
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open(self.file, "a") as stream:
            stream.write(json.dumps(run) + "\n")
        self.runs[contestant, case, repeat] = run
        return run
