"""Callbacks, interruption and progress of a run, and its results."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from partwise import NMF, Progress
from test_federation import PROGRAM

X = np.random.default_rng(0).random((300, 80))


def test_the_trace():
    model = NMF(4, init="random", solver="hals", random_state=0, tol=0, max_iter=12).fit(X)
    trace = model.trace_
    assert trace.dtype.names == ("iteration", "seconds", "relative_error", "loss")
    assert trace["iteration"].tolist() == list(range(13)) and model.n_iter_ == 12
    assert (np.diff(trace["relative_error"]) < 0).all() and (np.diff(trace["seconds"]) > 0).all()
    assert model.relative_error_ <= trace["relative_error"][-1]
    assert model.stopped_by_ == "iterations"


def test_a_callback_sees_every_iteration_and_may_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration < 4

    model = NMF(4, tol=0, max_iter=50, callback=callback, random_state=0).fit(X)
    assert [progress.iteration for progress in seen] == [1, 2, 3, 4]
    assert isinstance(seen[0], Progress) and seen[0].relative_error > seen[3].relative_error > 0
    assert model.n_iter_ == 4 and model.stopped_by_ == "interrupted"
    np.testing.assert_allclose(model.transform(X), NMF(4, tol=0, max_iter=4, random_state=0).fit_transform(X))


@pytest.mark.parametrize("answer", [None, True, 1, 0, "", np.True_, np.float64(0)])
def test_only_false_from_a_callback_ends_a_run(answer):
    assert NMF(4, tol=0, max_iter=3, callback=lambda progress: answer).fit(X).n_iter_ == 3
    assert NMF(4, tol=0, max_iter=3, callback=lambda progress: np.False_).fit(X).n_iter_ == 1


def test_callbacks_run_on_the_calling_thread():
    called = set()
    NMF(4, tol=0, max_iter=3, callback=lambda progress: called.add(threading.get_ident())).fit(X)
    assert called == {threading.get_ident()}


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
    # It advanced during iterations, and not only when the callback released the lock.
    assert seen[-1] - before > 30


PHASES = {
    "iterations": """
X = rng.random((2000, 500))
call = lambda: NMF(20, tol=0, max_iter=10**9, init="random").fit(X)
""",
    "start": """
X = rng.random((6000, 4000))
call = lambda: NMF(400, init="nndsvda").fit(X)
""",
    "transform": """
X, H = rng.random((3000, 1000)), rng.random((400, 1000))
call = lambda: partwise.non_negative_factorization(X, H=H, n_components=400, update_H=False)
""",
    "final solution": """
X = rng.random((3000, 1000))
call = lambda: NMF(400, init="random", max_iter=1, tol=0).fit(X)
""",
    "simulation": """
X = rng.random((300, 20))
call = lambda: partwise.simulate(X, 3, rounds=10**6, tolerance=0)
""",
    "party": """
X = rng.random((300, 20))
call = lambda: partwise.join(sys.argv[1], X)
""",
    "audit": """
call = lambda: partwise.audit(sys.argv[1])
""",
}

PROGRAM_OF_A_PHASE = """
import os, signal, sys, threading, time
import numpy as np, partwise
from partwise import NMF
# Python does not handle a signal that its parent process ignores, as a shell does for jobs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
{phase}
begin = []

def interrupt():
    begin.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(1, interrupt).start()
try:
    call()
except KeyboardInterrupt:
    print(time.process_time() - begin[0])
"""


def computed_after_ctrl_c(phase, *arguments):
    """Seconds of computing, of two threads, from Ctrl-C a second after the call to KeyboardInterrupt. Unlike those of a clock
    they do not depend on what else the machine does."""
    program = PROGRAM_OF_A_PHASE.format(phase=PHASES[phase])
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


# A second of each of the threads. All calls would take far longer.
LIMIT = 2


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("phase", ["iterations", "start", "transform", "final solution", "simulation"])
def test_ctrl_c_takes_effect_soon(phase):
    assert computed_after_ctrl_c(phase) < LIMIT


@pytest.mark.skipif(os.name != "posix" or not os.path.exists(PROGRAM), reason="sends a signal, and needs the program")
def test_ctrl_c_takes_effect_soon_in_a_federation(tmp_path):
    trial = tmp_path / "trial"
    options = ["--rank", "3", "--address", "127.0.0.1:9"]
    subprocess.run([PROGRAM, "provision", "--demo", "--out", trial, *options], check=True)
    assert computed_after_ctrl_c("party", trial / "party-1/party.toml") < LIMIT


@pytest.mark.skipif(os.name != "posix" or not os.path.exists(PROGRAM), reason="sends a signal, and needs the program")
def test_ctrl_c_takes_effect_soon_in_an_audit(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).random((1000, 1500), np.float32))
    options = ["--parties", "4", "--protocol", "pooled", "--rank", "20", "--rounds", "60", "--tolerance", "0"]
    options += ["--accept-that-pooled-sums-show-records", "--accept-that-few-records-show-in-sums"]
    options += ["--record", "--holdout", "0.2", "--quiet"]
    subprocess.run([PROGRAM, "simulate", tmp_path / "X.npy", *options, "--out", tmp_path / "out"], check=True)
    assert computed_after_ctrl_c("audit", tmp_path / "out") < LIMIT
