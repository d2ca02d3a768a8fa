"""Methods against independent implementations: scikit-learn, SciPy, NumPy."""

import gzip
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization

RANK = 5


def sample(kind, rows=60, cols=45, seed=0):
    """A matrix of rank 5 with noise; the sparse one has empty rows and columns."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, RANK)) ** 3 @ rng.random((RANK, cols)) ** 3 + 0.1 * rng.random((rows, cols))
    if kind == "dense":
        return dense
    dense[rng.random(dense.shape) < 0.8] = 0
    dense[[3, 7]] = 0
    dense[:, [5, 40]] = 0
    return sp.csr_matrix(dense)


def save(matrix, folder, name="M"):
    if sp.issparse(matrix):
        sp.save_npz(folder / f"{name}.npz", matrix)
        return folder / f"{name}.npz"
    np.save(folder / f"{name}.npy", matrix)
    return folder / f"{name}.npy"


def save_start(folder, m, n, k=RANK, seed=1):
    rng = np.random.default_rng(seed)
    u, v = rng.random((m, k)), rng.random((n, k))
    folder.mkdir()
    np.save(folder / "U.npy", u)
    np.save(folder / "V.npy", v)
    return u, v


def assert_same_model(got, want, tolerance=1e-8):
    """The scale of components is free: what must agree is U Vᵀ."""
    got, want = got[0] @ got[1].T, want[0] @ want[1].T
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * want.max())


def scikit_learn(matrix, u, v, iterations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w, h, _ = non_negative_factorization(
            matrix, u.copy(), v.T.copy(), n_components=u.shape[1], init="custom", solver="cd",
            shuffle=False, max_iter=iterations, tol=0,
        )
    return w, h.T


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_hals_is_scikit_learns_coordinate_descent(factorize, tmp_path, kind, nodes):
    matrix = sample(kind)
    u, v = save_start(tmp_path / "start", *matrix.shape)
    got_u, got_v, record = factorize(
        save(matrix, tmp_path), "--rank", RANK, "--algorithm", "hals", "--precision", "f64", "--nodes", nodes,
        "--init-from", tmp_path / "start", "--iterations", 20, "--tolerance", 0,
    )
    want_u, want_v = scikit_learn(matrix, u, v, 20)
    assert record["iterations"] == 20
    assert_same_model((got_u, got_v), (want_u, want_v))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("algorithm", ["auto", "hals", "dsanls"])
def test_the_error_is_numpys(factorize, partwise, tmp_path, kind, precision, algorithm):
    matrix = sample(kind)
    file = save(matrix, tmp_path)
    u, v, record = factorize(file, "--rank", RANK, "--algorithm", algorithm, "--precision", precision, "--nodes", 2,
                             "--iterations", 60)
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    want = np.linalg.norm(dense - u.astype(float) @ v.T.astype(float)) / np.linalg.norm(dense)
    assert record["relative_error"] == pytest.approx(want, rel=1e-5)
    assert float(partwise("evaluate", tmp_path / "out", file).split()[-1]) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_tiny_error_is_not_lost_to_cancellation(factorize, tmp_path, kind):
    rng = np.random.default_rng(4)
    dense = rng.random((80, 3)) @ rng.random((3, 50)) + 1e-4 * rng.random((80, 50))
    matrix = sp.csr_matrix(dense) if kind == "sparse" else dense
    u, v, record = factorize(save(matrix, tmp_path), "--rank", 3, "--iterations", 3000, "--tolerance", 0)
    want = np.linalg.norm(dense - u.astype(float) @ v.T.astype(float)) / np.linalg.norm(dense)
    assert want < 1e-3
    assert record["relative_error"] == pytest.approx(want, rel=1e-2)


@pytest.mark.parametrize("side", ["rows", "columns"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_transform_is_scipys_nnls(factorize, partwise, tmp_path, kind, side):
    u, v, _ = factorize(save(sample(kind), tmp_path), "--rank", RANK, "--precision", "f64", "--iterations", 30)
    shape = (20, 45) if side == "rows" else (60, 20)
    new = sample(kind, *shape, seed=9) if kind == "dense" else sp.random(*shape, 0.3, format="csr", random_state=9)
    partwise("transform", tmp_path / "out", save(new, tmp_path, "new"), "--side", side, "--out", tmp_path / "W.npy")
    dense = new.toarray() if sp.issparse(new) else new
    rows, fixed = (dense, v) if side == "rows" else (dense.T, u)
    want = np.array([scipy.optimize.nnls(fixed, row)[0] for row in rows])
    np.testing.assert_allclose(np.load(tmp_path / "W.npy"), want, atol=1e-8 * want.max())


def test_normalized_factors_are_the_same_model(factorize, tmp_path):
    file = save(sample("dense"), tmp_path)
    arguments = ("--rank", RANK, "--precision", "f64", "--iterations", 20)
    u, v, _ = factorize(file, *arguments)
    scaled_u, scaled_v, _ = factorize(file, *arguments, "--normalize", "u")
    np.testing.assert_allclose(np.linalg.norm(scaled_u, axis=0), 1)
    np.testing.assert_allclose(scaled_u @ scaled_v.T, u @ v.T)
    energy = np.linalg.norm(u, axis=0) * np.linalg.norm(v, axis=0)
    assert (np.diff(energy) <= 0).all()


def test_mnist(factorize, data):
    """The paper's dense case: bytes in memory, sketched on the long side; against scikit-learn on the same data."""
    file = data("mnist.npy.gz")
    _, _, hals = factorize(file, "--rank", 10, "--iterations", 20)
    _, _, dsanls = factorize(file, "--rank", 10, "--algorithm", "dsanls", "--nodes", 2, "--iterations", 60)
    assert (hals["input"]["rows"], hals["input"]["cols"]) == (70000, 784)
    with gzip.open(file) as stream:
        matrix = np.load(stream)[:5000].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w, h, _ = non_negative_factorization(matrix, n_components=10, init="random", random_state=0, max_iter=20)
    known = np.linalg.norm(matrix - w @ h) / np.linalg.norm(matrix)
    assert hals["relative_error"] == pytest.approx(known, rel=0.03)
    assert dsanls["relative_error"] == pytest.approx(hals["relative_error"], rel=0.03)


def test_rcv1_gives_the_same_bits_on_any_number_of_ranks(factorize, data):
    file = data("rcv1.npz")
    arguments = ("--rank", 10, "--algorithm", "dsanls", "--iterations", 30)
    u, v, record = factorize(file, *arguments)
    assert record["relative_error"] < 0.99
    empty = np.asarray(abs(sp.load_npz(file)).sum(axis=0)).ravel() == 0
    assert empty.sum() == 18073 and not v[empty].any()
    for nodes in [2, 5]:
        other_u, other_v, _ = factorize(file, *arguments, "--nodes", nodes)
        assert (u == other_u).all() and (v == other_v).all()


def test_pbmc3k_is_the_same_matrix_in_both_formats(factorize, data):
    arguments = ("--rank", 8, "--iterations", 10)
    npz = factorize(data("pbmc3k.npz"), *arguments)
    mtx = factorize(data("pbmc3k.mtx.gz"), *arguments)
    assert (npz[0] == mtx[0]).all() and (npz[1] == mtx[1]).all()
    assert npz[2]["input"]["sha256"] != mtx[2]["input"]["sha256"]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_bpp_is_scipys_nnls(factorize, tmp_path, kind):
    matrix = sample(kind)
    _, v = save_start(tmp_path / "start", *matrix.shape)
    got_u, got_v, _ = factorize(
        save(matrix, tmp_path), "--rank", RANK, "--algorithm", "bpp", "--precision", "f64", "--nodes", 2,
        "--init-from", tmp_path / "start", "--iterations", 1,
    )
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    want_u = np.array([scipy.optimize.nnls(v, row)[0] for row in dense])
    want_v = np.array([scipy.optimize.nnls(want_u, column)[0] for column in dense.T])
    assert_same_model((got_u, got_v), (want_u, want_v), 1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("solver", ["cd", "mu"])
@pytest.mark.parametrize("alpha_w, alpha_h, ratio", [(1e-3, 1e-3, 0.0), (2e-3, 1e-3, 1.0), (1e-3, 3e-3, 0.4)])
def test_penalties_are_scikit_learns(factorize, tmp_path, kind, solver, alpha_w, alpha_h, ratio):
    matrix = sample(kind)
    u, v = save_start(tmp_path / "start", *matrix.shape)
    u, v = 0.3 * u, 0.3 * v
    np.save(tmp_path / "start/U.npy", u)
    np.save(tmp_path / "start/V.npy", v)
    got_u, got_v, _ = factorize(
        save(matrix, tmp_path), "--rank", RANK, "--algorithm", {"cd": "hals", "mu": "mu"}[solver],
        "--precision", "f64", "--init-from", tmp_path / "start", "--iterations", 20, "--tolerance", 0,
        "--l1-u", alpha_w * ratio, "--l2-u", alpha_w * (1 - ratio),
        "--l1-v", alpha_h * ratio, "--l2-v", alpha_h * (1 - ratio),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want_u, want_h, _ = non_negative_factorization(
            matrix, u.copy(), v.T.copy(), n_components=RANK, init="custom", solver=solver, shuffle=False,
            max_iter=20, tol=0, alpha_W=alpha_w, alpha_H=alpha_h, l1_ratio=ratio,
        )
    np.testing.assert_allclose(got_u, want_u, rtol=0, atol=1e-8 * want_u.max())
    np.testing.assert_allclose(got_v, want_h.T, rtol=0, atol=1e-8 * want_h.max())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("init", ["nndsvd", "nndsvda", "nndsvdar"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_starts_from_singular_vectors_are_scikit_learns(factorize, tmp_path, monkeypatch, kind, init, nodes):
    from sklearn.decomposition import _nmf

    def exact_svd(matrix, count, **_):
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        u, s, vt = np.linalg.svd(dense, full_matrices=False)
        return u[:, :count], s[:count], vt[:count]

    # scikit-learn's own is randomized too, and with four iterations not exact on a flat spectrum.
    monkeypatch.setattr(_nmf, "_randomized_svd", exact_svd)
    matrix = sample(kind)
    # One sketched step with an enormous damping changes nothing: the factors are the start.
    got_u, got_v, _ = factorize(
        save(matrix, tmp_path), "--rank", RANK, "--algorithm", "dsanls", "--alpha", 1e14, "--iterations", 1,
        "--precision", "f64", "--init", init, "--nodes", nodes, "--normalize", "none",
    )
    want_u, want_h = _nmf._initialize_nmf(matrix, RANK, init=init, random_state=0)
    want_v = want_h.T
    order = np.argsort(-np.linalg.norm(want_u, axis=0) * np.linalg.norm(want_v, axis=0), kind="stable")
    want_u, want_v = want_u[:, order], want_v[:, order]
    # Ours is randomized as well: the flat spectrum of the sparse sample shows it (scikit-learn's own ends 1e-3 away).
    close = {"dense": 1e-8, "sparse": 1e-4}[kind]
    if init == "nndsvdar":
        # The random filling comes from another generator, but is as small.
        for got, want in [(got_u, want_u), (got_v, want_v)]:
            filled = want < 0.05 * matrix.mean()
            assert (got[filled] < 0.06 * matrix.mean()).all() and (got >= 0).all() and (got > 0).mean() > 0.99
            np.testing.assert_allclose(got[~filled], want[~filled], rtol=0, atol=close * want.max())
    else:
        np.testing.assert_allclose(got_u, want_u, rtol=0, atol=close * want_u.max())
        np.testing.assert_allclose(got_v, want_v, rtol=0, atol=close * want_v.max())
