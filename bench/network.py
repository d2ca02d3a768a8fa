"""The method that reaches an error first, by number of nodes and network: writes docs/performance/network.csv.

    python3 bench/network.py target/release/partwise FOLDER [--budget SECONDS] [--report FILE]

An iteration leads to the same error on any number of nodes, and takes the same computing and the same messages on any
network. So two kinds of runs are enough. One for each matrix, k and method, on one node, says after how many iterations
it has the error. One for each of these and each number of nodes, of few iterations, with virtual clocks on all networks
at once, says what an iteration takes. What `auto` chooses on a network, `partwise plan` says.

Every run is a line of FOLDER/runs.jsonl, so that what was interrupted goes on where it was. Real matrices are looked for
in the folder PARTWISE_DATA.
"""

import argparse
import csv
import itertools
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import tempfile
import time

DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", "../shared/data"))
MATRICES = {"mnist": "mnist.npy.gz", "rcv1": "rcv1.npz", "dblp": "dblp.npz"}
RANKS = [20, 100]
NODES = [4, 8, 16]
NETWORKS = ["100Mbit/s,100us", "1Gbit/s,100us", "10Gbit/s,20us", "unlimited"]
METHODS = {
    "dsanls/s": ["--algorithm", "dsanls"],
    "dsanls/g": ["--algorithm", "dsanls", "--sketch", "gaussian"],
    "hals": ["--algorithm", "hals"],
    "bpp": ["--algorithm", "bpp"],
    "auto (exact)": ["--algorithm", "auto", "--samples", "no"],
    "auto (exact, samples)": ["--algorithm", "auto", "--samples", "yes"],
}
# The errors to reach are those of HALS after so many iterations.
TARGETS = [3, 20]
# Iterations that the others may take to it, and seconds of one core.
MOST = {"dsanls/s": 1000, "dsanls/g": 200, "hals": TARGETS[-1], "bpp": 20, "auto (exact)": 20, "auto (exact, samples)": 20}
SECONDS = 25
# Iterations whose time is measured, and seconds of a core that all nodes may take for them.
TIMED = {"dsanls/s": 8, "dsanls/g": 1, "hals": 6, "bpp": 3, "auto (exact)": 6, "auto (exact, samples)": 6}
PATIENCE = 45


def limited(seconds):
    """Ends a program that takes more processor time."""
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def factorize(program, matrix, k, method, options, patience):
    """A run's record and its curve; nothing if it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result"
        words = [program, "factorize", DATA / MATRICES[matrix], "--rank", k, "--tolerance", 0, "--quiet", "--out", out]
        words = [str(word) for word in words + METHODS[method] + options]
        code = subprocess.run(words, preexec_fn=limited(patience)).returncode
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return None
        assert code == 0, words
        with open(out / "trace.csv") as file:
            return json.loads((out / "run.json").read_text()), list(csv.DictReader(file))


def converge(program, matrix, k, method, target):
    """Iterations to the error."""
    # Time by the processor, whatever else the machine does.
    options = ["--iterations", MOST[method], "--time-limit", SECONDS, "--network", "unlimited"]
    options += ["--trace-every", 5 if method == "dsanls/s" else 1]
    if target is not None:
        options += ["--target-error", target]
    run = factorize(program, matrix, k, method, options, 4 * SECONDS)
    if run is None:
        return {"iterations": 0, "curve": []}
    record, trace = run
    return {"iterations": record["iterations"], "error": record["relative_error"],
            "curve": [[int(line["iteration"]), float(line["relative_error"])] for line in trace]}


def clock(program, matrix, k, method, nodes):
    """Seconds of the first iteration and of a later one, on each network."""
    options = ["--nodes", nodes, "--iterations", TIMED[method], "--trace-every", 1]
    for network in NETWORKS:
        options += ["--network", network]
    run = factorize(program, matrix, k, method, options, PATIENCE)
    if run is None:
        return {"first": None}
    record, trace = run
    names = ["virtual_seconds"] + [f"virtual_seconds_{place}" for place in range(2, len(NETWORKS) + 1)]
    times = [[float(line[name]) for line in trace] for name in names]
    steps = [[after - before for before, after in zip(line, line[1:])] for line in times]
    return {"first": [step[0] for step in steps],
            "later": [statistics.median(step[1:] or step) for step in steps],
            "grid": record["grid"], "bytes": int(trace[-1]["bytes_sent"]) / TIMED[method]}


class Store:
    """What was run, by what it was."""

    def __init__(self, folder):
        self.path = folder / "runs.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.runs = {tuple(line["what"]): line for line in map(json.loads, lines)}

    def get(self, what, work):
        if what not in self.runs:
            begin = time.time()
            self.runs[what] = {"what": what, **work(), "machine_seconds": time.time() - begin}
            with open(self.path, "a") as file:
                file.write(json.dumps(self.runs[what]) + "\n")
            print(*what, f"{self.runs[what]['machine_seconds']:.1f} s", flush=True)
        return self.runs[what]


def measure(program, store, end):
    # What takes longest, comes last.
    for method, matrix, k in itertools.product(["hals", "auto (exact)", "auto (exact, samples)", "dsanls/s", "bpp", "dsanls/g"], MATRICES, RANKS):
        if not (DATA / MATRICES[matrix]).exists():
            print(f"{matrix} is not in {DATA}, left out")
            continue
        # Only of dense matrices are there samples.
        if method == "auto (exact, samples)" and matrix != "mnist":
            continue
        target = None if method == "hals" else store.runs["converge", matrix, k, "hals"]["error"]
        store.get(("converge", matrix, k, method), lambda: converge(program, matrix, k, method, target))
        for nodes in NODES:
            if time.time() > end:
                return False
            # More nodes do not take less of this machine.
            before = store.runs.get(("clock", matrix, k, method, nodes // 2))
            hopeless = before is not None and before["first"] is None
            store.get(("clock", matrix, k, method, nodes),
                      lambda: {"first": None} if hopeless else clock(program, matrix, k, method, nodes))
    return True


def iterations_to(run, error):
    """Iterations to an error, and whether it was reached; nothing if there was not even one."""
    reached = [iteration for iteration, found in run["curve"] if found <= error]
    return (reached[0], True) if reached else (run["iterations"], False) if run["iterations"] else None


def seconds_to(store, matrix, k, method, nodes, network, error):
    """Seconds to an error, and whether it was reached; nothing if it was not measured."""
    run = store.runs.get(("converge", matrix, k, method))
    times = store.runs.get(("clock", matrix, k, method, nodes))
    if run is None or times is None or times["first"] is None or iterations_to(run, error) is None:
        return None
    iterations, reached = iterations_to(run, error)
    place = NETWORKS.index(network)
    return times["first"][place] + (iterations - 1) * times["later"][place], reached


def choice(program, matrix, k, nodes, network):
    """What `auto` does there."""
    sizes = {"mnist": (70000, 784, None), "rcv1": (27613, 47236, 2144845), "dblp": (326186, 326186, 1615400)}
    rows, cols, nonzeros = sizes[matrix]
    words = [program, "plan", "--rows", rows, "--cols", cols, "--rank", k, "--nodes", nodes, "--network", network, "--json"]
    words += ["--nonzeros", nonzeros] if nonzeros else ["--bytes"]
    answer = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True).stdout)
    exact = "auto (exact, samples)" if answer["samples"] else "auto (exact)"
    return {"auto": exact, "dsanls": "dsanls/s"}[answer["best"]["method"]]


COLUMNS = ["matrix", "k", "hals_iterations", "error", "processes", "network", "method", "iterations", "virtual_seconds", "reached",
           "auto_chooses"]


def rows_of(program, store, matrix, k, after):
    """The rows of one matrix, k and error: virtual seconds to the error, or those a run had taken without reaching it."""
    error = dict(store.runs["converge", matrix, k, "hals"]["curve"])[after]
    found = []
    for nodes, network in itertools.product(NODES, NETWORKS):
        chosen = choice(program, matrix, k, nodes, network)
        for method in METHODS:
            cell = seconds_to(store, matrix, k, method, nodes, network, error)
            if cell is None:
                continue
            iterations, _ = iterations_to(store.runs["converge", matrix, k, method], error)
            seconds = f"{cell[0]:.3g}" if cell[0] < 100 else f"{cell[0]:.0f}"
            found.append([matrix, k, after, f"{error:.6f}", nodes, network, method, iterations, seconds,
                          "yes" if cell[1] else "no", chosen])
    return found


def report(program, store, file):
    cases = [case for case in itertools.product(MATRICES, RANKS, TARGETS) if ("converge", *case[:2], "hals") in store.runs]
    with open(file, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for case in cases:
            writer.writerows(rows_of(program, store, *case))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=float("inf"), help="begin no run after so many seconds")
    parser.add_argument("--report", type=pathlib.Path)
    words = parser.parse_args()
    words.folder.mkdir(parents=True, exist_ok=True)
    store = Store(words.folder)
    done = measure(words.program.resolve(), store, time.time() + words.budget)
    print("all measured" if done else "the budget is spent; call again to go on")
    if words.report:
        report(words.program.resolve(), store, words.report)


if __name__ == "__main__":
    main()
