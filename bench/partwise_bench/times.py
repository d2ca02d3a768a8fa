"""From curves to the numbers of the table: the time to an error, and ratios with their spread."""

import math
import statistics

from .stopwatch import MILESTONES


def time_to_reach(curve, error):
    """Seconds until a curve first is at or below an error, by a straight line between the points around it."""
    before = None
    for _, seconds, reached in curve:
        if reached <= error:
            if before is None or before[1] <= error:
                return seconds
            share = (before[1] - error) / (before[1] - reached)
            return before[0] + share * (seconds - before[0])
        before = (seconds, reached)
    return math.inf


def milestones(curve):
    """(iteration, error) that the reference reached at 10, 50 and 200 iterations, or at its last where it was capped."""
    reached = {iteration: error for iteration, _, error in curve}
    last = max(reached)
    return [(min(wanted, last), reached[min(wanted, last)]) for wanted in MILESTONES]


def fastest(times):
    """Of {name: seconds of each repeat}, the name with the least median."""
    return min(times, key=lambda name: statistics.median(times[name]))


def ratios(times, against):
    """Least, median and greatest ratio over repeats, each to the other's time in the same repeat."""
    each = sorted(own / other for own, other in zip(times, against))
    return each[0], statistics.median(each), each[-1]
