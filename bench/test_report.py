"""The cells of the tables, from made-up runs."""

import types

from partwise_bench.cases import Case
from partwise_bench.contestants import REFERENCE
from partwise_bench.report import Results, note, rows_of, section, summary
from partwise_bench.runs import Plan

CASE = Case("mnist", 20)


def falling(seconds, iterations=200):
    """A curve with the error 1 / i after i iterations."""
    return [(i, seconds * i, 1 / i) for i in range(1, iterations + 1)]


def plan(runs, cap=120.0, patience=4.0):
    """Of {(program, repeat): curve, or words why not}."""

    def stored(name, case, repeat):
        found = runs.get((name, repeat))
        if found is None:
            return None
        run = {"failed": found} if isinstance(found, str) else {"curve": found, "ended": found[-1][1], "process": 9.0, "algorithm": "hals"}
        return {"others": 0.5 if name == "torchnmf" else 0.0, **run}

    repeats = 1 + max(repeat for _, repeat in runs)
    return Plan(types.SimpleNamespace(get=stored), 2, repeats, cap, patience)


def test_ratios_to_the_fastest_peer_with_their_spread(tmp_path):
    runs = {(REFERENCE, r): falling(0.2) for r in range(3)}
    runs |= {("partwise", r): falling(seconds) for r, seconds in enumerate([0.1, 0.05, 0.2])}
    runs |= {("nmf-torch hals", r): falling(0.1, 60) for r in range(3)}
    runs |= {("nmf-torch halsvar", 0): "takes no sparse matrix"}
    runs |= {("torchnmf", r): falling(0.4) for r in range(3)}
    runs |= {("scikit-learn mu", 0): falling(0.3)}
    results = Results(plan(runs), CASE)
    # nmf-torch is the fastest peer as far as it comes, 60 iterations in 6 seconds.
    assert results.cell("partwise", 0) == "1.00 (0.50 to 2.00)"
    assert results.cell("partwise", 2) == "0.50 (0.25 to 1.00)"
    assert results.cell("nmf-torch hals", 2) == "> 0.15"
    assert results.cell("torchnmf", 1) == "4.00 (4.00 to 4.00) *"
    assert section(tmp_path, results) == "![mnist-20](mnist-20.svg)"
    rows = {(row[1], row[2]): row for row in rows_of(results)}
    assert rows["nmf-torch halsvar", ""][-1] == "takes no sparse matrix"
    assert rows["partwise", 200][5:] == ["0.50", "0.25", "1.00", "no", ""]
    assert rows["nmf-torch hals", 200][5:] == ["", "", "", "no", "> 0.15"]
    assert not any(name == "scikit-learn mu" for name, _ in rows), "it has not all repeats yet"
    assert (tmp_path / "mnist-20.svg").read_text().startswith("<svg")
    line = summary([results]).splitlines()[2]
    assert line.endswith("nmf-torch hals; scikit-learn cd |")


def test_reached_in_some_repeats_only():
    runs = {(REFERENCE, r): falling(0.2) for r in range(3)}
    runs |= {("partwise", r): falling(0.1, 200 if r else 20) for r in range(3)}
    assert Results(plan(runs), CASE).cell("partwise", 2) == "0.50 (0.50 to never)"


def test_a_capped_reference_is_noted():
    runs = {(REFERENCE, 0): falling(2.0, 48), ("partwise", 0): falling(1.0, 48)}
    results = Results(plan(runs), CASE)
    assert [note(results, milestone) for milestone in range(3)] == ["", " (48)", " (48)"]
    assert results.cell("partwise", 1) == "0.50"
    assert "stopped by the cap" in summary([results])


def test_a_reference_that_came_to_one_iteration_can_be_drawn(tmp_path):
    results = Results(plan({(REFERENCE, 0): falling(90.0, 1), ("partwise", 0): falling(9.0, 1)}), CASE)
    assert section(tmp_path, results).endswith("(mnist-20.svg)")
    assert [row[5] for row in rows_of(results) if row[1] == "partwise"] == ["0.10", "0.10", "0.10"]


def test_caps():
    quick_case = plan({(REFERENCE, 0): falling(0.01)})
    assert quick_case.limits("partwise", CASE, 0) == {"target": 1 / 200, "cap": 8.0}
    tiny = plan({(REFERENCE, 0): falling(0.001)})
    assert tiny.limits("partwise", CASE, 0)["cap"] == 5.0
    slow = plan({(REFERENCE, 0): falling(2.0, 48)})
    assert slow.limits("partwise", CASE, 0) == {"target": 1 / 48, "cap": 120.0}
    # Later repeats of the reference go as far as the first did.
    assert slow.limits(REFERENCE, CASE, 0) == {"target": None, "iterations": 200, "cap": 96.0}
    assert slow.limits(REFERENCE, CASE, 1) == {"target": None, "iterations": 48, "cap": 120.0}
