"""The pages in docs/performance: tables in Markdown and curves in SVG, from stored results."""

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

    def cell(self, name, milestone):
        """The ratio in words, with a star where other processes disturbed either of the two."""
        best, seconds, compared = self.compared(milestone)
        star = " *" if any(map(is_disturbed, self.runs[name] + self.runs[best])) else ""
        return self.ratio(name, seconds, *compared[name]) + star

    def ratio(self, name, seconds, least, middle, greatest):
        if math.isinf(middle):
            shortest = min(run["ended"] for run in self.runs[name])
            return f"> {figure(shortest / statistics.median(seconds))}"
        if len(seconds) == 1:
            return figure(middle)
        spread = f"{figure(least)} to {figure(greatest)}" if math.isfinite(greatest) else f"{figure(least)} to never"
        return f"{figure(middle)} ({spread})"


def figure(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def seconds_of(value):
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def write(out, plan, growth_store, doublings):
    out.mkdir(parents=True, exist_ok=True)
    cases = [results for case in everything() if (results := Results(plan, case)).ready]
    page = [
        "# Whole runs, measured",
        "Written by `make bench`; [performance.md](../performance.md) says what is measured and how to read it.",
        machine.description([run for results in cases for runs in results.runs.values() for run in runs]),
        "## Partwise against the fastest peer",
        f"Time of `partwise`, with the options that a user gets, divided by that of the fastest other program, to the "
        f"three errors that scikit-learn's coordinate descent has after {', '.join(map(str, MILESTONES[:-1]))} and "
        f"{MILESTONES[-1]} iterations: median (least to greatest) of {plan.repeats} repeats. Below 1 Partwise is faster. A star: other processes "
        f"took more than {DISTURBING} cores meanwhile, and the figure is not to be relied on.",
        summary(cases),
        "## The whole process",
        "What a user waits for: `partwise` from its start to its end, to the last of the three errors; the computing "
        "within it that the other tables count; and the rest: starting, reading the file and its hash, evaluating "
        "errors, writing. Medians.",
        processes(cases),
        "## Every program",
        "Ratios to the fastest peer, as above. `> 4.00`: not reached when the run was ended, which had then taken so "
        "many times as long.",
        *[section(out, results) for results in cases],
        "## How cost grows",
        *grown(out, growth_store, plan.repeats, doublings),
    ]
    temporary = out / "results.md.part"
    temporary.write_text("\n\n".join(page) + "\n")
    temporary.rename(out / "results.md")


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(cases):
    rows = []
    for results in (results for results in cases if DEFAULT in results.runs):
        cells, peers = [], []
        for milestone in range(len(MILESTONES)):
            best, seconds, _ = results.compared(milestone)
            cells.append(results.cell(DEFAULT, milestone) + note(results, milestone))
            peers.append(f"{best}, {seconds_of(statistics.median(seconds))}")
        rows.append([f"`{results.case}`", *cells, "; ".join(dict.fromkeys(peers))])
    heads = ["case", *(f"{wanted} iterations" for wanted in MILESTONES), "fastest peer, its time to each"]
    capped = "An error marked (i) is that after i iterations, where scikit-learn was stopped by the cap."
    return table(heads, rows) + ("\n\n" + capped if any(note(r, m) for r in cases for m in range(3)) else "")


def note(results, milestone):
    reached = results.errors[milestone][0]
    return "" if reached == MILESTONES[milestone] else f" ({reached})"


def processes(cases):
    rows = []
    for results in (results for results in cases if DEFAULT in results.runs):
        runs = results.runs[DEFAULT]
        whole = statistics.median(run["process"] for run in runs)
        computing = statistics.median(run["curve"][-1][1] for run in runs)
        cells = [seconds_of(value) for value in (whole, computing, whole - computing)]
        rows.append([f"`{results.case}`", *cells, str(runs[0]["curve"][-1][0]), runs[0]["algorithm"]])
    return table(["case", "whole process", "computing", "the rest", "iterations", "method chosen"], rows)


def section(out, results):
    rows = []
    for name in [*PARTWISE, *PEERS]:
        if name in results.runs:
            rows.append([name, *(results.cell(name, milestone) for milestone in range(len(MILESTONES)))])
        elif name in results.unable:
            rows.append([name, results.unable[name], "", ""])
    heads = ["program"]
    for milestone, (iteration, error) in enumerate(results.errors):
        best, seconds, _ = results.compared(milestone)
        heads.append(f"{error:.6f} ({iteration} iterations); 1 is {seconds_of(statistics.median(seconds))}")
    (out / f"{results.case}.svg").write_text(curves(results))
    return f"### `{results.case}`\n\n{table(heads, rows)}\n\n![error over time]({results.case}.svg)"


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
        "Median milliseconds of an iteration, and in brackets Gflop/s. Operations are counted as those of two products "
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
