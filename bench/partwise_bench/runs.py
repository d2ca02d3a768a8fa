"""The runs, their order and their time limits."""

import time

from .contestants import REFERENCE, everybody
from .load import is_disturbed
from .stopwatch import MILESTONES
from .times import milestones, time_to_reach


class Plan:
    """Repeats outside, programs inside: A B C, A B C. What is stored already is not run again."""

    def __init__(self, store, threads, repeats, cap, patience):
        self.store, self.threads, self.repeats, self.cap, self.patience = store, threads, repeats, cap, patience

    def errors(self, case):
        """What scikit-learn reached in its first run, which decides what all have to reach; None before it."""
        first = self.store.get(REFERENCE, str(case), 0)
        return milestones(first["curve"]) if first else None

    def limits(self, contestant, case, repeat):
        """Target, number of iterations and cap of a run."""
        if contestant == REFERENCE and repeat == 0:
            # Below the cap, so that later repeats get as far within it.
            return {"target": None, "iterations": MILESTONES[-1], "cap": 0.8 * self.cap}
        last, error = self.errors(case)[-1]
        if contestant == REFERENCE:
            return {"target": None, "iterations": last, "cap": self.cap}
        needed = time_to_reach(self.store.get(REFERENCE, str(case), 0)["curve"], error)
        return {"target": error, "cap": min(self.cap, max(self.cap / 24, self.patience * needed))}

    def pending(self, cases, contestants):
        """One run after the other, so that targets are known when they are needed."""
        for repeat in range(self.repeats):
            for case in cases:
                for contestant in everybody():
                    if contestant not in contestants and (contestant != REFERENCE or self.errors(case)):
                        continue
                    target = None if contestant == REFERENCE else self.errors(case)[-1][1]
                    if not self.store.is_current(contestant, str(case), repeat, target):
                        yield contestant, case, repeat

    def carry_out(self, cases, contestants, budget):
        """Returns whether all was done within the seconds given."""
        begin = time.monotonic()
        for contestant, case, repeat in self.pending(cases, contestants):
            if time.monotonic() - begin >= budget:
                return False
            limits = self.limits(contestant, case, repeat)
            place = {"file": str(case.file), "start": str(case.start), "k": case.k}
            run = self.store.run(contestant, str(case), repeat, self.threads, **place, **limits)
            print(f"{case}, repeat {repeat + 1}, {contestant}: {words(run)}", flush=True)
        return True


def words(run):
    if "failed" in run:
        return run["failed"]
    iteration, seconds, error = run["curve"][-1]
    disturbed = f"; disturbed: other processes took {run['others']:.2f} cores" if is_disturbed(run) else ""
    return f"{error:.6f} after {iteration} iterations, {seconds:.2f} s{disturbed}"
