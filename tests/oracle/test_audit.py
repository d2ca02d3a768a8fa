"""The audit against NumPy, SciPy and scikit-learn, from the recorded messages alone, and on real data."""

import json
import os
import pathlib
import struct
import subprocess

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from sklearn.metrics import roc_auc_score

DUMP = os.environ.get("PARTWISE_DUMP")


def read_transcript(path):
    """The messages and the index, by the description in docs/formats.md."""
    data = path.read_bytes()
    assert data[:24] == b"partwise transcript 001\n"
    (count,), place = struct.unpack_from("<Q", data, 24), 32
    payloads = []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, place)
        payloads.append(data[place + 8:place + 8 + length])
        place += 8 + length
    return payloads, json.loads(data[place:])


def plain_numbers(message, columns, places=17):
    """The matrix of an upload that was not masked: kind, place (16 bytes), counts of words, words."""
    narrow, _wide = struct.unpack_from("<II", message, places)
    return np.frombuffer(message, "<f4", narrow, places + 8).astype(float).reshape(-1, columns)


@pytest.fixture
def audited(partwise, tmp_path):
    """Simulates and audits; returns the messages, the index, run.json and audit.json."""

    def run(file, *arguments):
        out = tmp_path / "out"
        partwise("simulate", file, "--out", out, "--force", "--quiet", "--audit", "--record", *arguments)
        payloads, index = read_transcript(out / "transcript.bin")
        run = json.loads((out / "run.json").read_text())
        return payloads, index, run, json.loads((out / "audit.json").read_text())

    return run


def finding(audit, attack, seat, on):
    (found,) = [f for f in audit["findings"] if (f["attack"], f["seat"], f["on"]) == (attack, seat, on)]
    return found


def sample(rows, cols, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((rows, 4)) ** 3 @ rng.random((4, cols)) ** 3 + 0.3 * rng.random((rows, cols))


PLAIN = ("--aggregation", "plain", "--accept-that-plain-shares-show-records",
         "--accept-that-pooled-sums-show-records")


def test_matching_is_the_best_cosine_and_its_auc_that_of_scikit_learn(audited, tmp_path):
    matrix = sample(90, 40)
    np.save(tmp_path / "m.npy", matrix)
    payloads, index, run, audit = audited(
        tmp_path / "m.npy", "--parties", 3, "--protocol", "syn-sd", "--rank", 8, "--rounds", 6, *PLAIN)
    dealt, held = run["recorded"]["dealt"], run["recorded"]["held_out"]
    scores, member = [], []
    for party, records in enumerate(dealt, start=1):
        seen = np.hstack([
            plain_numbers(payloads[total["uploads"][str(party)]], 8)
            for total in index["sums"]["0"] if total["what"] == "U"])
        seen /= np.linalg.norm(seen, axis=0)
        others = held[party - 1]
        candidates = matrix.astype(np.float32).astype(float)[records + others]
        candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
        scores.extend((candidates @ seen).max(axis=1))
        member.extend([1] * len(records) + [0] * len(others))
    scores, member = np.array(scores), np.array(member)
    found = finding(audit, "matching", "coordinator", "messages")
    assert found["members"] == member.sum() and found["others"] == sum(map(len, held))
    assert found["auc"] == pytest.approx(roc_auc_score(member, scores), abs=1e-9)
    assert found["mean_of_members"] == pytest.approx(scores[member == 1].mean(), abs=1e-9)
    assert found["mean_of_others"] == pytest.approx(scores[member == 0].mean(), abs=1e-9)


def test_the_final_u_fits_as_scipys_nonnegative_least_squares_does(audited, tmp_path):
    matrix = sample(60, 30, seed=1)
    np.save(tmp_path / "m.npy", matrix)
    _, _, run, audit = audited(
        tmp_path / "m.npy", "--parties", 3, "--protocol", "syn-sd", "--rank", 4, "--rounds", 20, "--precision", "f64")
    u = np.load(tmp_path / "out/party-1/V.npy")
    dealt, held = run["recorded"]["dealt"], sum(run["recorded"]["held_out"], [])
    members = [record for records in dealt for record in records]
    fit = [-scipy.optimize.nnls(u, matrix[r])[1] / np.linalg.norm(matrix[r]) for r in members + held]
    found = finding(audit, "final U", "everybody", "fit")
    assert found["auc"] == pytest.approx(
        roc_auc_score([1] * len(members) + [0] * len(held), fit), abs=0.01)
    assert found["mean_of_members"] == pytest.approx(np.mean(fit[:len(members)]), abs=1e-3)


def test_the_span_is_numpys(audited, tmp_path):
    matrix = sample(36, 80, seed=2)
    np.save(tmp_path / "m.npy", matrix)
    payloads, index, run, audit = audited(
        tmp_path / "m.npy", "--parties", 3, "--protocol", "pooled", "--rank", 5, "--rounds", 20, "--holdout", 12, *PLAIN)
    dealt, held = run["recorded"]["dealt"], run["recorded"]["held_out"]
    scores, beyond, member = [], [], []
    u = np.linalg.qr(np.load(tmp_path / "out/party-1/V.npy").astype(float))[0]
    for party, records in enumerate(dealt, start=1):
        seen = np.hstack([
            plain_numbers(payloads[total["uploads"][str(party)]], 5)
            for total in index["sums"]["0"] if total["what"] == "M V"])
        left, values, _ = np.linalg.svd(seen / np.linalg.norm(seen, axis=0), full_matrices=False)
        basis = left[:, :len(records)]
        assert values[len(records)] < 1e-4 * values[0]
        others = held[party - 1]
        for record in records + others:
            x = matrix[record] / np.linalg.norm(matrix[record])
            scores.append(-np.linalg.norm(x - basis @ (basis.T @ x)))
            beyond.append(np.log(np.linalg.norm(x - u @ (u.T @ x)) / -scores[-1]))
        member.extend([1] * len(records) + [0] * len(others))
    found = finding(audit, "span", "coordinator", "messages")
    assert found["auc"] == pytest.approx(roc_auc_score(member, scores), abs=1e-9) == 1.0
    member = np.array(member)
    assert found["mean_of_others"] == pytest.approx(np.mean(np.array(scores)[member == 0]), abs=0.02)
    found = finding(audit, "span", "coordinator", "messages beyond U")
    assert found["auc"] == pytest.approx(roc_auc_score(member, beyond), abs=1e-9) == 1.0
    assert found["mean_of_others"] == pytest.approx(np.mean(np.array(beyond)[member == 0]), abs=0.02)


def test_chi_square_is_scipys(audited, tmp_path):
    np.save(tmp_path / "m.npy", sample(60, 30))
    *_, audit = audited(tmp_path / "m.npy", "--parties", 3, "--protocol", "syn-sd", "--rank", 3, "--rounds", 10)
    words = audit["words"]
    assert words["p"] == pytest.approx(scipy.stats.chi2.sf(words["statistic"], words["degrees"]), rel=1e-9)
    assert words["p"] > 1e-5


@pytest.mark.skipif(not DUMP, reason="PARTWISE_DUMP names no program, beside which `solve` is")
@pytest.mark.parametrize("equations", [6, 40])
def test_linear_recovery_is_numpys_and_scipys(equations):
    rng = np.random.default_rng(equations)
    truth = np.where(rng.random((7, 12)) < 0.7, 0, rng.random((7, 12)))
    sketches = [rng.normal(size=(12, equations // 2)) for _ in range(2)]
    seen = [truth @ s + 0.01 * rng.normal(size=(7, equations // 2)) for s in sketches]
    asked = {"unknowns": 12, "size": equations // 2,
             "sketches": [s.ravel().tolist() for s in sketches], "seen": [y.ravel().tolist() for y in seen]}
    done = subprocess.run([pathlib.Path(DUMP).parent / "solve"], input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    solved = json.loads(done.stdout)
    s, y = np.hstack(sketches), np.hstack(seen)
    least = np.linalg.lstsq(s.T, y.T, rcond=None)[0].T
    np.testing.assert_allclose(np.reshape(solved["least_squares"], (7, 12)), least, atol=1e-8)
    nonnegative = np.reshape(solved["nonnegative"], (7, 12))
    assert (nonnegative >= 0).all()
    for row, x in zip(y, nonnegative):
        best = scipy.optimize.nnls(s.T, row)
        # With too few equations there are many solutions.
        assert np.linalg.norm(s.T @ x - row) <= best[1] + 1e-3
        if equations > 12:
            np.testing.assert_allclose(x, best[0], atol=1e-6)


def test_mimic(audited, data):
    """Sums of M V span the admissions; plain shares of ten admissions are these admissions."""
    file = data("mimic.npz")
    *_, pooled = audited(file, "--parties", 5, "--protocol", "pooled", "--rank", 10, "--rounds", 60,
                         "--accept-that-pooled-sums-show-records")
    for seat in ["coordinator", "party", "all-others"]:
        assert finding(pooled, "span", seat, "sums")["auc"] > 0.999
    masked = finding(pooled, "matching", "coordinator", "messages")
    assert abs(masked["auc"] - 0.5) < 3 * masked["standard_error"] + 0.02
    *_, plain = audited(file, "--parties", 5, "--protocol", "syn-sd", "--rank", 20, "--rounds", 40, "--holdout", 225, *PLAIN)
    shares = finding(plain, "matching", "coordinator", "messages")
    assert shares["auc"] > 0.999 and shares["mean_of_members"] > 0.98
