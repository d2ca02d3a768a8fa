"""The hooks do not change results: a peer ends with the same error with and without them."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from partwise_bench.stopwatch import RelativeError

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "data/digits.npy"
K, ITERATIONS = 4, 12


@pytest.fixture(params=["dense", "sparse"])
def problem(request, tmp_path):
    matrix = np.load(DIGITS).astype(np.float32)
    file = DIGITS
    if request.param == "sparse":
        matrix, file = scipy.sparse.csr_matrix(matrix), tmp_path / "digits.npz"
        scipy.sparse.save_npz(file, matrix)
    random = np.random.default_rng(1)
    u, v = (random.random((side, K), dtype=np.float32) for side in matrix.shape)
    np.save(tmp_path / "U.npy", u)
    np.save(tmp_path / "V.npy", v)
    return matrix, file, tmp_path, u, v


def watched(problem, contestant):
    """In a process of its own, as in the benchmark."""
    _, file, start, _, _ = problem
    job = {"contestant": contestant, "file": str(file), "k": K, "start": str(start), "threads": 1}
    job |= {"cap": 100.0, "iterations": ITERATIONS}
    command = [sys.executable, "-W", "ignore", "-m", "partwise_bench.one_run", json.dumps(job)]
    done = subprocess.run(command, cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "failed" not in result, result
    iteration, seconds, error = result["curve"][-1]
    assert iteration == ITERATIONS and seconds > 0
    return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("contestant", ["cd", "mu", "MiniBatchNMF"])
def test_scikit_learn(problem, contestant):
    from sklearn.decomposition import NMF, MiniBatchNMF

    matrix, _, _, u, v = problem
    if contestant == "MiniBatchNMF":
        model = MiniBatchNMF(K, init="custom", tol=0, max_no_improvement=None, max_iter=ITERATIONS)
    else:
        model = NMF(K, init="custom", solver=contestant, tol=0, max_iter=ITERATIONS)
    w = model.fit_transform(matrix, W=u.copy(), H=v.T.copy())
    expected = RelativeError(matrix)(w, model.components_.T)
    assert watched(problem, f"scikit-learn {contestant}") == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_torchnmf(problem):
    torch = pytest.importorskip("torch")
    from torchnmf.nmf import NMF

    matrix, _, _, u, v = problem
    if scipy.sparse.issparse(matrix):
        given = torch.from_numpy(matrix.toarray()).to_sparse()
    else:
        given = torch.from_numpy(matrix)
    model = NMF(W=torch.from_numpy(v), H=torch.from_numpy(u))
    model.fit(given, beta=2, tol=float("-inf"), max_iter=ITERATIONS)
    expected = RelativeError(matrix)(model.H.detach().numpy(), model.W.detach().numpy())
    assert watched(problem, "torchnmf") == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["hals", "halsvar"])
def test_nmf_torch(problem, algorithm, monkeypatch):
    torch = pytest.importorskip("torch")
    import nmf
    from nmf.nmf_models import NMFBatchHALS

    matrix, _, _, u, v = problem

    def given(model, eps=0):
        model.H, model.W = torch.from_numpy(u.copy()), torch.from_numpy(v.T.copy())

    monkeypatch.setattr(NMFBatchHALS, "_initialize_H_W", given)
    dense = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    h, w, _ = nmf.run_nmf(dense, K, algo=algorithm, tol=-1.0, batch_max_iter=ITERATIONS)
    expected = RelativeError(matrix)(h, w.T)
    assert watched(problem, f"nmf-torch {algorithm}") == pytest.approx(expected, rel=1e-5)


def test_the_error_is_that_of_the_residual(problem):
    matrix, _, _, u, v = problem
    dense = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    residual = dense.astype(np.float64) - u.astype(np.float64) @ v.T
    assert RelativeError(matrix)(u, v) == pytest.approx(np.linalg.norm(residual) / np.linalg.norm(dense), rel=1e-5)
