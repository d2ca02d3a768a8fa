"""What can be done with a run while it works, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from partwise import NMF, Progress

X = np.random.default_rng(0).random((300, 80))


def test_the_trace():
    model = NMF(4, init="random", solver="hals", random_state=0, tol=0, max_iter=12).fit(X)
    trace = model.trace_
    assert trace.dtype.names == ("iteration", "seconds", "relative_error")
    assert trace["iteration"].tolist() == list(range(13)) and model.n_iter_ == 12
    assert (np.diff(trace["relative_error"]) < 0).all() and (np.diff(trace["seconds"]) > 0).all()
    assert model.relative_error_ <= trace["relative_error"][-1]
    assert model.stopped_by_ == "iterations"


def test_a_callback_sees_every_iteration_and_may_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 4

    model = NMF(4, tol=0, max_iter=50, callback=callback, random_state=0).fit(X)
    assert [progress.iteration for progress in seen] == [1, 2, 3, 4]
    assert isinstance(seen[0], Progress) and seen[0].relative_error > seen[3].relative_error > 0
    assert model.n_iter_ == 4 and model.stopped_by_ == "interrupted"
    np.testing.assert_allclose(model.transform(X), NMF(4, tol=0, max_iter=4, random_state=0).fit_transform(X))


def test_what_a_callback_raises_comes_out():
    def callback(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        NMF(4, callback=callback).fit(X)


def test_other_stopping_rules():
    assert NMF(4, tol=0, max_iter=10_000, target_error=0.5).fit(X).stopped_by_ == "target-error"
    assert NMF(4, tol=0, max_iter=10**9, time_limit=0.05).fit(X).stopped_by_ == "time-limit"
    assert NMF(4, tol=1e-3, max_iter=10_000).fit(X).stopped_by_ == "tolerance"


def test_progress_is_a_line_on_stderr_that_vanishes(capfd):
    NMF(4, tol=0, max_iter=30, progress=True).fit(X)
    out, err = capfd.readouterr()
    assert out == "" and "\riteration 1/30, error 0." in err and err.endswith("\r")


def test_verbose_prints_the_error(capfd):
    NMF(4, tol=0, max_iter=20, verbose=1).fit(X)
    out, _ = capfd.readouterr()
    assert [line.split(":")[0] for line in out.splitlines()] == ["iteration 10", "iteration 20"]


def test_other_threads_run_meanwhile():
    """A thread counts while the main thread computes: it could not if the interpreter's lock were held."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    large = np.random.default_rng(0).random((4000, 1000))
    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        seen = []
        NMF(10, init="random", tol=0, max_iter=30, callback=lambda progress: seen.append(counted[0])).fit(large)
    finally:
        stop.set()
        thread.join()
    # It came forward within iterations, again and again, and not only when the callback gave it a chance.
    assert seen[-1] - before > 30


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_within_an_iteration():
    # Python leaves a signal alone that whoever started the tests ignores, as a shell does for jobs in the background.
    program = """
import signal
import numpy as np
from partwise import NMF
signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).random((2000, 500))
print("ready", flush=True)
try:
    NMF(20, tol=0, max_iter=10**9, init="random").fit(X)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    # Far more than an iteration, far less than all of them.
    out, _ = process.communicate(timeout=60)
    assert out == "stopped\n" and process.returncode == 0
