"""The numbers that tables are computed from: times to an error, errors, ratios."""

import math
import time

import pytest

from partwise_bench.stopwatch import Done, Stopwatch
from partwise_bench.times import fastest, milestones, ratios, time_to_reach

CURVE = [(1, 1.0, 0.8), (2, 2.0, 0.6), (3, 4.0, 0.5), (4, 5.0, 0.55), (5, 6.0, 0.4)]


@pytest.mark.parametrize(
    "error, seconds",
    [
        (0.9, 1.0),  # the first point is there already
        (0.8, 1.0),
        (0.7, 1.5),
        (0.6, 2.0),
        (0.525, 3.5),
        (0.5, 4.0),  # before the error rises again
        (0.45, 5.0 + 0.1 / 0.15),
        (0.4, 6.0),
        (0.39, math.inf),
    ],
)
def test_time_to_an_error_is_interpolated(error, seconds):
    assert time_to_reach(CURVE, error) == pytest.approx(seconds)


def test_errors_to_reach_are_those_after_10_50_and_200_iterations():
    curve = [(i, 0.1 * i, 1 / i) for i in range(1, 201)]
    assert milestones(curve) == [(10, 1 / 10), (50, 1 / 50), (200, 1 / 200)]


def test_where_the_cap_came_first_the_last_error_stands_in():
    curve = [(i, 2.0 * i, 1 / i) for i in range(1, 31)]
    assert milestones(curve) == [(10, 1 / 10), (30, 1 / 30), (30, 1 / 30)]


def test_fastest_by_median_and_never_is_slowest():
    assert fastest({"a": [1.0, 9.0, 9.0], "b": [5.0, 5.0, 5.0], "c": [math.inf] * 3}) == "b"


def test_ratios_are_taken_within_a_repeat():
    # The machine was twice as slow in the second repeat, for both.
    assert ratios([1.0, 2.0, 1.2], [2.0, 4.0, 2.0]) == pytest.approx((0.5, 0.5, 0.6))
    assert ratios([math.inf, 1.0, math.inf], [1.0, 1.0, 1.0]) == (1.0, math.inf, math.inf)


def watched(errors, **limits):
    """The curve of a program whose errors are given."""
    remaining = iter(errors)
    watch = Stopwatch(lambda u, v: next(remaining), **limits)
    watch.start()
    with pytest.raises(Done):
        for _ in range(1000):
            watch.iterated(lambda: (None, None))
    return watch.curve


def test_a_run_ends_at_its_target_its_iterations_or_its_cap():
    falling = [1 / i for i in range(1, 1000)]
    assert [point[2] for point in watched(falling, cap=60, target=0.25)] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert [point[0] for point in watched(falling, cap=60, iterations=3)] == [1, 2, 3]
    assert [point[0] for point in watched(falling, cap=0)] == [1]
    assert [point[0] for point in watched([0.5, math.nan], cap=60)] == [1, 2]


def test_the_iterations_of_the_milestones_are_always_evaluated():
    iterations = [point[0] for point in watched([1.0] * 1000, cap=60, iterations=200)]
    assert {10, 50, 200} <= set(iterations)
    assert all(after - before <= max(1, before / 20) for before, after in zip(iterations, iterations[1:]))


def test_the_cap_ends_an_iteration_that_does_not_end():
    watch = Stopwatch(lambda u, v: 0.5, cap=0.5)
    with pytest.raises(Done), watch.capped():
        watch.start()
        watch.iterated(lambda: (None, None))
        while True:
            time.sleep(0.01)
    assert len(watch.curve) == 1 and watch.seconds() >= 0.5


def test_the_clock_stands_still_while_it_is_paused():
    watch = Stopwatch(None, cap=60)
    watch.start()
    with watch.paused():
        before = watch.seconds()
        time.sleep(0.01)
        assert watch.seconds() == before
