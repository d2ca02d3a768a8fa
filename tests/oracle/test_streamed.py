"""Files larger than the memory limit, against NumPy and against the same files in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

RANK = 4


def dense(rows=3000, cols=2200):
    rng = np.random.default_rng(0)
    matrix = rng.random((rows, RANK)) ** 3 @ rng.random((RANK, cols)) ** 3
    return 200 * matrix + 20 * rng.random((rows, cols))


def relative_error(matrix, u, v):
    return np.linalg.norm(matrix - u.astype(float) @ v.T.astype(float)) / np.linalg.norm(matrix)


def both(factorize, file, *options):
    """The same run in memory and streamed; the record of the second."""
    u, v, record = factorize(file, "--rank", RANK, "--iterations", 8, "--tolerance", 0, *options)
    assert record["streamed"] is None
    su, sv, streamed = factorize(
        file, "--rank", RANK, "--iterations", 8, "--tolerance", 0, "--memory", "16MiB", *options
    )
    assert streamed["streamed"]["passes"] >= 10
    np.testing.assert_allclose(su, u, rtol=0, atol=1e-4 * u.max())
    np.testing.assert_allclose(sv, v, rtol=0, atol=1e-4 * v.max())
    assert streamed["relative_error"] == pytest.approx(record["relative_error"], rel=1e-5)
    return su, sv, streamed


@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f8", ">u2", "<i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_kind(factorize, tmp_path, kind, order):
    matrix = np.asarray(dense(), dtype=kind, order=order)
    np.save(tmp_path / "M.npy", matrix)
    u, v, record = both(factorize, tmp_path / "M.npy")
    assert record["streamed"]["lines"] == ("rows" if order == "C" else "columns")
    assert record["relative_error"] == pytest.approx(relative_error(matrix.astype(float), u, v), rel=1e-5)


def test_bytes(factorize, tmp_path):
    matrix = np.clip(dense(6000, 3000), 0, 255).astype(np.uint8)
    np.save(tmp_path / "M.npy", matrix)
    u, v, record = both(factorize, tmp_path / "M.npy")
    assert record["relative_error"] == pytest.approx(relative_error(matrix.astype(float), u, v), rel=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("sorted_indices", [True, False])
def test_sparse_matrices_as_scipy_writes_them(factorize, tmp_path, form, sorted_indices):
    rng = np.random.default_rng(1)
    matrix = sp.random(9000, 4000, 0.05, form, random_state=rng, data_rvs=rng.random)
    if not sorted_indices:
        for line in range(0, matrix.indptr.size - 1, 7):
            part = slice(matrix.indptr[line], matrix.indptr[line + 1])
            matrix.indices[part] = matrix.indices[part][::-1].copy()
            matrix.data[part] = matrix.data[part][::-1].copy()
    sp.save_npz(tmp_path / "M.npz", matrix, compressed=False)
    u, v, record = both(factorize, tmp_path / "M.npz")
    assert record["streamed"]["lines"] == ("rows" if form == "csr" else "columns")
    assert record["relative_error"] == pytest.approx(relative_error(matrix.toarray(), u, v), rel=1e-5)


def test_an_uncompressed_npz_is_scipys(partwise, tmp_path):
    matrix = sp.random(50, 40, 0.2, "csr", random_state=3)
    sp.save_npz(tmp_path / "M.npz", matrix)
    partwise("convert", tmp_path / "M.npz", tmp_path / "S.npz", "--uncompressed")
    back = sp.load_npz(tmp_path / "S.npz")
    assert (back != matrix).nnz == 0
    assert (tmp_path / "S.npz").stat().st_size > matrix.nnz * 12
