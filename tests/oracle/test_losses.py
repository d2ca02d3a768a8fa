"""Kullback-Leibler and Itakura-Saito against scikit-learn's multiplicative updates, from the same start."""

import gzip
import os
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

NAMES = {"kl": "kullback-leibler", "is": "itakura-saito"}


def scikit_learn(M, loss, U, V, iterations):
    """Return W, H and the loss after this many multiplicative updates."""
    model = NMF(
        U.shape[1], init="custom", solver="mu", beta_loss=NAMES[loss], max_iter=iterations, tol=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = model.fit_transform(M, W=U.copy(), H=np.ascontiguousarray(V.T))
    return W, model.components_, model.reconstruction_err_**2 / 2


def counts(rows=60, cols=45, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, 2, (rows, k)) @ rng.gamma(0.5, 2, (k, cols))).astype(float)


def start(folder, shape, k, seed):
    rng = np.random.default_rng(seed)
    U, V = (rng.uniform(0.1, 1, (length, k)) for length in shape)
    folder.mkdir()
    np.save(folder / "U.npy", U)
    np.save(folder / "V.npy", V)
    return U, V


@pytest.mark.parametrize("loss, sparse", [("kl", False), ("kl", True), ("is", False)])
def test_twenty_multiplicative_updates_match_scikit_learn(factorize, tmp_path, loss, sparse):
    M = counts() + (0.5 if loss == "is" else 0)
    file = tmp_path / ("M.npz" if sparse else "M.npy")
    given = scipy.sparse.csr_matrix(M) if sparse else M
    scipy.sparse.save_npz(file, given) if sparse else np.save(file, M)
    U, V = start(tmp_path / "start", M.shape, 5, 1)
    ours = factorize(
        file, "--rank", 5, "--loss", loss, "--algorithm", "mu", "--iterations", 20, "--tolerance", 0,
        "--precision", "f64", "--init-from", tmp_path / "start",
    )
    W, H, expected = scikit_learn(given, loss, U, V, 20)
    np.testing.assert_allclose(ours[0] @ ours[1].T, W @ H, rtol=1e-8, atol=1e-10)
    assert ours[2]["loss"] == pytest.approx(expected, rel=1e-9)
    assert ours[2]["loss_name"] == loss


def test_the_divergence_is_at_most_a_thousandth_above_scikit_learns_best(factorize, tmp_path):
    M = counts(seed=3)
    np.save(tmp_path / "M.npy", M)
    ours, theirs = [], []
    for seed in range(5):
        folder = tmp_path / f"start{seed}"
        U, V = start(folder, M.shape, 4, seed)
        theirs.append(scikit_learn(M, "kl", U, V, 2000)[2])
        run = factorize(
            tmp_path / "M.npy", "--rank", 4, "--loss", "kl", "--algorithm", "auto", "--precision", "f64",
            "--init-from", folder, "--tolerance", "1e-8", "--iterations", 2000,
        )
        ours.append(run[2]["loss"])
    assert min(ours) <= 1.001 * min(theirs), (ours, theirs)
    assert np.median(np.divide(ours, theirs)) <= 1.001


def test_row_sums_of_the_model_equal_those_of_the_matrix(factorize, tmp_path):
    M = counts(seed=5)
    np.save(tmp_path / "M.npy", M)
    U, V, _ = factorize(
        tmp_path / "M.npy", "--rank", 3, "--loss", "kl", "--algorithm", "auto", "--precision", "f64",
        "--tolerance", "1e-10", "--iterations", 3000,
    )
    np.testing.assert_allclose((U @ V.T).sum(1), M.sum(1), rtol=1e-4)
    np.testing.assert_allclose((U @ V.T).sum(0), M.sum(0), rtol=1e-4)


def test_signatures_of_real_mutations_match_scikit_learn(factorize, tmp_path, data):
    M = np.load(gzip.open(data("pcawg.npy.gz"))).astype(float)
    np.save(tmp_path / "M.npy", M)
    U, V = start(tmp_path / "start", M.shape, 8, 0)
    _, _, theirs = scikit_learn(M, "kl", U, V, 500)
    run = factorize(
        tmp_path / "M.npy", "--rank", 8, "--loss", "kl", "--algorithm", "auto", "--iterations", 500,
        "--tolerance", 0, "--init-from", tmp_path / "start",
    )
    assert run[2]["loss"] <= 1.001 * theirs


def cosines(A, B):
    """The cosine of each column of A with the column of B that is assigned to it."""
    A, B = (X / np.linalg.norm(X, axis=0) for X in (A, B))
    C = A.T @ B
    rows, cols = linear_sum_assignment(-C)
    return C[rows, cols]


@pytest.mark.skipif("PARTWISE_LONG" not in os.environ, reason="takes minutes; make long-runs")
@pytest.mark.parametrize("k", [8, 12, 16, 20])
def test_stable_signatures_are_those_of_scikit_learns_best_run(factorize, tmp_path, data, k):
    M = np.load(gzip.open(data("pcawg.npy.gz"))).astype(float)
    np.save(tmp_path / "M.npy", M)
    runs = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        U, V = (rng.uniform(0.1, 1, (length, k)) * np.sqrt(M.mean() / k) for length in M.shape)
        W, H, loss = scikit_learn(M, "kl", U, V, 2000)
        runs.append((loss, W if M.shape[0] < M.shape[1] else H.T))
    runs.sort(key=lambda run: run[0])
    best = runs[0][1]
    # Stable: found in three quarters of the runs.
    stable = np.mean([cosines(best, run) > 0.99 for _, run in runs], axis=0) >= 0.75
    U, V, record = factorize(
        tmp_path / "M.npy", "--rank", k, "--loss", "kl", "--algorithm", "auto", "--restarts", 20,
        "--iterations", 2000, "--tolerance", "1e-6",
    )
    assert record["loss"] <= 1.001 * runs[0][0]
    ours = cosines(best, U if M.shape[0] < M.shape[1] else V)
    assert stable.sum() >= 3
    assert (ours[stable] > 0.99).all(), (ours, stable)
