"""A federation from Python: the coordinator is the program, the parties are interpreters of their own."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise

BUILT = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
PROGRAM = os.environ.get("PARTWISE_BIN", str(BUILT / "release" / "partwise"))


def records(first: int, count: int, features: int = 16) -> np.ndarray:
    kinds = np.random.default_rng(1).exponential(size=(3, features))
    weights = np.random.default_rng(first).exponential(size=(count, 3))
    return (weights @ kinds).astype(np.float32)


def free_port() -> int:
    """One that was free a moment ago, and that the system gives to no connection."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


PARTY = """
import sys, numpy as np, partwise
joined = partwise.join(sys.argv[1], np.load(sys.argv[2]), feature_names=[f"f{i}" for i in range(16)])
np.savez(sys.argv[3], U=joined.U, V=joined.V, error=joined.report["relative_error"])
"""


@pytest.mark.skipif(not os.path.exists(PROGRAM), reason="the program is not built")
def test_join(tmp_path: Path) -> None:
    trial = tmp_path / "trial"
    address = f"127.0.0.1:{free_port()}"
    options = ["--rank", "3", "--rounds", "20", "--address", address]
    subprocess.run([PROGRAM, "provision", "--demo", "--out", trial, *options], check=True)
    coordinator = [PROGRAM, "coordinator", "run", trial / "coordinator/federation.toml", "--out", tmp_path / "out"]
    processes = [subprocess.Popen([*coordinator, "--status-address", "none"])]
    for party in (1, 2, 3):
        np.save(tmp_path / f"{party}.npy", records(party, 30))
        file, data, out = trial / f"party-{party}/party.toml", tmp_path / f"{party}.npy", tmp_path / f"{party}.npz"
        processes.append(subprocess.Popen([sys.executable, "-c", PARTY, file, data, out]))
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0, 0]
    results = [np.load(tmp_path / f"{party}.npz") for party in (1, 2, 3)]
    for party, result in zip((1, 2, 3), results):
        X = records(party, 30)
        assert result["U"].shape == (30, 3)
        assert np.array_equal(result["V"], results[0]["V"])
        assert np.linalg.norm(X - result["U"] @ result["V"].T) < 0.2 * np.linalg.norm(X)
    assert np.array_equal(np.load(tmp_path / "out/V.npy"), results[0]["V"])
    report = partwise.audit(trial / "party-1/state")
    uploads = [line for line in report["sent"] if line["kind"] == "upload"]
    assert [line["cover"] for line in uploads] == ["masked"]
    sums = json.loads((tmp_path / "out/run.json").read_text())["sums"]
    assert uploads[0]["count"] == sums


def test_simulate() -> None:
    X = records(1, 60)
    result = partwise.simulate(X, 3, parties=3, protocol="pooled", rounds=200)
    assert result.V.shape == (16, 3)
    assert [u.shape for u in result.U] == [(20, 3)] * 3
    whole = np.vstack(result.U) @ result.V.T
    assert np.linalg.norm(X - whole) / np.linalg.norm(X) == pytest.approx(result.report["relative_error"], rel=1e-3)
    again = partwise.simulate(X, 3, parties=np.arange(60) // 20, protocol="pooled", rounds=200)
    assert np.array_equal(result.V, again.V)


def test_damping_that_is_not_given_is_that_of_the_solver() -> None:
    def shared(**settings: object) -> np.ndarray:
        return partwise.simulate(records(1, 60), 3, parties=3, rounds=5, solver="pgd", **settings).V

    assert np.array_equal(shared(), shared(alpha=2.0, beta=0.002))
    assert not np.array_equal(shared(), shared(alpha=0.1, beta=0.02))


@pytest.mark.skipif(not os.path.exists(PROGRAM), reason="the program is not built")
def test_audit_of_a_recorded_simulation(tmp_path: Path) -> None:
    """The same as the program says of it; members of few records are told from others."""
    matrix, out = tmp_path / "m.npy", tmp_path / "out"
    np.save(matrix, np.random.default_rng(0).exponential(size=(60, 80)) ** 3)
    options = ["--parties", "3", "--protocol", "pooled", "--rank", "5", "--rounds", "20", "--seed", "1", "--quiet"]
    options += ["--accept-that-pooled-sums-show-records", "--record", "--audit", "--out", str(out)]
    subprocess.run([PROGRAM, "simulate", matrix, *options], check=True)
    told = partwise.audit(out)
    written = json.loads((out / "audit.json").read_text())
    for figures in (told, written):
        figures["limits"].pop("threads")
    assert told == written
    assert told["highest_auc"] > 0.95 and any("can tell with AUC" in sentence for sentence in told["verdict"])
    assert {left["cover"] for left in told["left"]} == {"masked", "control"}
    assert partwise.audit(out, colluders=1, n_jobs=1)["findings"] == told["findings"]
    matrix.rename(tmp_path / "moved.npy")
    with pytest.raises(ValueError, match="does not exist"):
        partwise.audit(out)
    assert partwise.audit(out, data=tmp_path / "moved.npy")["verdict"] == told["verdict"]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    X = records(1, 60)
    with pytest.raises(ValueError, match="two parties"):
        partwise.simulate(X, 3, parties=2)
    with pytest.raises(ValueError, match="is not a setting"):
        partwise.simulate(X, 3, sede=1)
    with pytest.raises(ValueError, match="rho: syn-sd does not use it"):
        partwise.simulate(X, 3, rho=5.0)
    with pytest.raises(ValueError, match="below 0"):
        partwise.simulate(-X, 3)
    with pytest.raises(ValueError, match="party.toml"):
        partwise.join(tmp_path / "party.toml", X)
    with pytest.raises(ValueError, match="ledger"):
        partwise.audit(tmp_path)
