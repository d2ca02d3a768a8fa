"""The results in docs/performance: a page with its summary, every ratio in CSV, and curves in SVG."""

import csv
import math
import statistics

from . import chart, growth, machine
from .cases import everything
from .contestants import PARTWISE, PEERS, REFERENCE, everybody
from .load import DISTURBING, is_disturbed
from .stopwatch import MILESTONES
from .times import fastest, ratios, time_to_reach

DEFAULT = next(iter(PARTWISE))
COLOUR = dict(zip([*PARTWISE, *PEERS], chart.COLOURS))


class Results:
    """Of one case, as far as it was measured: a program counts when it has all repeats or cannot take part."""

    def __init__(self, plan, case):
        self.case, self.errors = case, plan.errors(case)
        self.runs, self.unable = {}, {}
        for contestant in everybody():
            runs = [plan.store.get(contestant, str(case), repeat) for repeat in range(plan.repeats)]
            failed = [run["failed"] for run in runs if run and "failed" in run]
            if failed:
                self.unable[contestant] = failed[0]
            elif all(runs):
                self.runs[contestant] = runs
        self.ready = self.errors is not None and REFERENCE in self.runs

    def times(self, milestone, of):
        error = self.errors[milestone][1]
        return {
            name: [time_to_reach(run["curve"], error) for run in runs]
            for name, runs in self.runs.items()
            if name in of
        }

    def compared(self, milestone):
        """The fastest peer, its seconds in each repeat, and (least, median, greatest) ratio of everybody to it."""
        peers = self.times(milestone, PEERS)
        best = fastest(peers)
        everyone = self.times(milestone, self.runs)
        return best, peers[best], {name: ratios(times, peers[best]) for name, times in everyone.items()}

    def cell(self, name, milestone, spread=True):
        """The ratio in words, with a star where other processes disturbed either of the two."""
        best, seconds, compared = self.compared(milestone)
        star = " *" if any(map(is_disturbed, self.runs[name] + self.runs[best])) else ""
        return self.ratio(name, seconds, *compared[name], spread) + star

    def ratio(self, name, seconds, least, middle, greatest, spread=True):
        if math.isinf(middle):
            shortest = min(run["ended"] for run in self.runs[name])
            return f"> {figure(shortest / statistics.median(seconds))}"
        if len(seconds) == 1 or not spread:
            return figure(middle)
        return f"{figure(middle)} ({figure(least)} to {figure(greatest) if math.isfinite(greatest) else 'never'})"


def figure(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def seconds_of(value):
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def write(out, plan, growth_store, doublings):
    out.mkdir(parents=True, exist_ok=True)
    cases = [results for case in everything() if (results := Results(plan, case)).ready]
    page = [
        "# Whole runs, measured",
        "Written by `make bench`; see [Performance](../performance.md). [results.csv](results.csv) has every ratio of every program, "
        "[processes.csv](processes.csv) the seconds of whole processes, with reading and writing.",
        machine.description([run for results in cases for runs in results.runs.values() for run in runs]),
        "## Partwise against the fastest peer",
        f"Time of `partwise` with default options relative to the fastest other program, to the errors that scikit-learn's coordinate "
        f"descent has after {', '.join(map(str, MILESTONES[:-1]))} and {MILESTONES[-1]} iterations: medians of {plan.repeats} "
        f"repeats. Below 1, Partwise is faster. A star marks figures that other processes disturbed.",
        summary(cases),
        "## Error over time",
        *[section(out, results) for results in cases],
        "## How cost grows",
        *grown(out, growth_store, plan.repeats, doublings),
    ]
    write_csv(out / "results.csv", [COLUMNS, *(row for results in cases for row in rows_of(results))])
    write_csv(out / "processes.csv", processes(cases))
    temporary = out / "results.md.part"
    temporary.write_text("\n\n".join(page) + "\n")
    temporary.rename(out / "results.md")


def write_csv(file, rows):
    with open(file, "w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(cases):
    rows = []
    for results in (results for results in cases if DEFAULT in results.runs):
        cells, peers = [], []
        for milestone in range(len(MILESTONES)):
            peers.append(results.compared(milestone)[0])
            cells.append(results.cell(DEFAULT, milestone, spread=False) + note(results, milestone))
        rows.append([f"`{results.case}`", *cells, "; ".join(dict.fromkeys(peers))])
    heads = ["case", *(f"{wanted} iterations" for wanted in MILESTONES), "fastest peer"]
    capped = "(i): the error after i iterations, where scikit-learn was stopped by the cap."
    return table(heads, rows) + ("\n\n" + capped if any(note(r, m) for r in cases for m in range(3)) else "")


def note(results, milestone):
    reached = results.errors[milestone][0]
    return "" if reached == MILESTONES[milestone] else f" ({reached})"


def processes(cases):
    """What a user waits for, to the last error: the whole process, and the computing within it that ratios count. Medians."""
    rows = [["case", "process_seconds", "computing_seconds", "iterations", "method"]]
    for results in (results for results in cases if DEFAULT in results.runs):
        runs = results.runs[DEFAULT]
        whole = statistics.median(run["process"] for run in runs)
        computing = statistics.median(run["curve"][-1][1] for run in runs)
        rows.append([str(results.case), f"{whole:.3f}", f"{computing:.3f}", runs[0]["curve"][-1][0], runs[0]["algorithm"]])
    return rows


COLUMNS = [
    "case", "program", "reference_iterations", "error", "fastest_peer_seconds", "ratio", "least", "greatest", "disturbed", "note"
]  # fmt: skip


def rows_of(results):
    """One row for each program and error. Without a ratio: `note` says why, or the run ended before it reached the error."""
    rows = []
    for name in [*PARTWISE, *PEERS]:
        if name in results.unable:
            rows.append([str(results.case), name, *[""] * 7, results.unable[name]])
        elif name in results.runs:
            rows += [row_of(results, name, milestone) for milestone in range(len(MILESTONES))]
    return rows


def row_of(results, name, milestone):
    best, seconds, compared = results.compared(milestone)
    iterations, error = results.errors[milestone]
    found = [f"{ratio:.2f}" if math.isfinite(ratio) else "" for ratio in compared[name]]
    least, middle, greatest = found
    missing = "" if middle else results.ratio(name, seconds, *compared[name])
    disturbed = any(map(is_disturbed, results.runs[name] + results.runs[best]))
    head = [str(results.case), name, iterations, f"{error:.6f}", f"{statistics.median(seconds):.3f}"]
    return [*head, middle, least, greatest, "yes" if disturbed else "no", missing]


def section(out, results):
    (out / f"{results.case}.svg").write_text(curves(results))
    return f"![{results.case}]({results.case}.svg)"


def curves(results):
    """Error over time, of each program's first run."""
    lines, ends = [], []
    lowest, first = results.errors[-1][1], results.errors[0][1]
    # What lies far above the first of the three errors is cut off; the three may be one, under the cap.
    top = min(results.runs[REFERENCE][0]["curve"][0][2], first + max(first - lowest, 0.05 * first))
    top = max(top, 1.01 * lowest)
    for name in [*PARTWISE, *PEERS]:
        if name in results.runs:
            curve = results.runs[name][0]["curve"]
            words = name if min(point[2] for point in curve) < top else f"{name} (above)"
            lines.append(chart.Line(words, thinned(curve), COLOUR[name], bold=name == DEFAULT))
            ends += [curve[0][1], curve[-1][1]]
    marks = {error: f"scikit-learn cd, {iteration} iterations" for iteration, error in reversed(results.errors)}
    room = 0.06 * (top - lowest)
    x = (max(min(ends) / 1.2, max(ends) / 1e5), max(ends) * 1.2, True)
    y = (lowest - room, top + room, False)
    return chart.draw(
        f"{results.case}: relative error over time", lines, x, y, "seconds of computing (log)", "relative error",
        list(marks.items()),
    )  # fmt: skip


def thinned(curve, most=80):
    """Points evenly spaced in log time: thousands of iterations would make a file of megabytes."""
    points, last = [], -math.inf
    step = math.log(max(curve[-1][1] / curve[0][1], 1.01)) / most
    for _, seconds, error in curve:
        if math.log(seconds) - last >= step or seconds == curve[-1][1]:
            points.append((seconds, error))
            last = math.log(seconds)
    return points


def grown(out, store, repeats, doublings):
    parts = [
        "Median milliseconds per iteration, and in brackets Gflop/s. Operations are counted as those of two products "
        "with M (four per stored entry and component), two Gram matrices and two sweeps; for `dsanls` as those of the "
        "sketched problem. Where a curve is parallel to the line of slope 1, the rate does not depend on the size."
    ]
    for data in growth.DATASETS:
        rows, lines = [], {}
        for size in growth.sizes(data, doublings):
            cells = []
            for name in growth.CONTESTANTS:
                runs = [store.get(name, str(size), repeat) for repeat in range(repeats)]
                if all(run and "curve" in run for run in runs):
                    seconds = statistics.median(growth.seconds_of(run) for run in runs)
                    gflop = size.flops(runs[0]) / 1e9
                    lines.setdefault((name, size.grown), []).append((gflop, seconds * 1e3))
                    cells.append(f"{seconds * 1e3:,.4g} ({gflop / seconds:.3g})")
            if len(cells) == len(growth.CONTESTANTS):
                rows.append([size.grown, str(size.rows), str(size.k), *cells])
        if rows:
            (out / f"growth-{data}.svg").write_text(growth_chart(data, lines))
            heads = ["doubled", "rows", "k", *growth.CONTESTANTS]
            parts.append(f"### `{data}`\n\n{table(heads, rows)}\n\n![time against operations](growth-{data}.svg)")
    return parts


def growth_chart(data, lines):
    drawn = [
        chart.Line(f"{name}, {what} doubled", points, COLOUR[name], bold=what == "k", dots=True)
        for (name, what), points in sorted(lines.items())
    ]
    x, y = ([point[side] for line in drawn for point in line.points] for side in (0, 1))
    least, growth_of_x = (min(x), min(y)), max(x) / min(x)
    drawn.append(chart.Line("slope 1", [least, (least[0] * growth_of_x, least[1] * growth_of_x)], chart.COLOURS[-1]))
    limits = [(min(values) / 1.3, max(values) * 1.3, True) for values in (x, y)]
    words = ("Gflop an iteration (log)", "milliseconds an iteration (log)")
    return chart.draw(f"{data}: time of an iteration against operations", drawn, *limits, *words)
