"""Every reader against files that NumPy, SciPy and pandas' layout wrote.

PARTWISE_DUMP is the program built by `cargo build --release -p partwise-core --example dump`; PARTWISE_DATA the folder
of real matrices, ../shared/data beside the repository unless given.
"""

import gzip
import os
import pathlib
import subprocess

import numpy as np
import pytest
import scipy.io
import scipy.sparse

DUMP = os.environ.get("PARTWISE_DUMP")
ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", ROOT / ".." / "shared" / "data"))

pytestmark = pytest.mark.skipif(not DUMP, reason="PARTWISE_DUMP names no program")


def dump(path, *flags):
    """Matrix, row labels, column labels and format as the program read them."""
    done = subprocess.run([DUMP, str(path), *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    rows, cols = map(int, lines[0].split())
    matrix = np.array([line.split() for line in lines[1 : rows + 1]], dtype=np.float64).reshape(rows, cols)
    labels = [None if line == "-" else line.split("|") for line in lines[rows + 1 : rows + 3]]
    return matrix, *labels, lines[rows + 3]


def refused(path):
    """The one sentence on stderr."""
    done = subprocess.run([DUMP, str(path)], capture_output=True, text=True)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def same(path, expected):
    """The file, and the same under gzip, read as `expected`."""
    expected = np.asarray(expected, dtype=np.float64)
    matrix, *_, words = dump(path)
    np.testing.assert_array_equal(matrix, expected)
    narrow = dump(path, "--f32")[0]
    np.testing.assert_allclose(narrow, expected, rtol=2**-24)
    packed = pathlib.Path(f"{path}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    matrix, *_, packed_words = dump(packed)
    np.testing.assert_array_equal(matrix, expected)
    assert packed_words == words + ", gzip"
    return words


DTYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]


def values(dtype, shape=(7, 5)):
    """Numbers that use the type's range."""
    random = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind == "f":
        return (random.random(shape) * 10.0 ** random.integers(-30, 30, shape)).astype(dtype)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_npy(tmp_path, dtype, endian, order, version):
    matrix = np.asarray(values(endian + dtype), order=order)
    path = tmp_path / "m.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, matrix, version=version)
    words = same(path, matrix)
    name = {"C": "C", "F": "Fortran"}[order]
    assert words == f"NumPy array, {matrix.dtype.name}, {name} order"


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (300, 1000)])
def test_npy_shapes(tmp_path, shape):
    for order in "CF":
        matrix = np.asarray(values("f8", shape), order=order)
        np.save(tmp_path / "m.npy", matrix)
        same(tmp_path / "m.npy", matrix)


@pytest.mark.parametrize(
    "array, words",
    [
        (np.ones(3), "1 dimension (of 3), not 2"),
        (np.ones((2, 3, 4)), "3 dimensions (2 x 3 x 4), not 2"),
        (np.float64(1), "no dimension, not 2"),
        (np.ones((2, 2), complex), "complex numbers"),
        (np.array([["a", "b"]]), "text"),
        (np.array([[b"a", b"b"]]), "text"),
        (np.array([[None, 1]], dtype=object), "Python objects"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "dates or times"),
        (np.ones((2, 2), "f2"), "width other than 32 and 64"),
        (np.zeros((2, 2), [("a", "f4")]), "record array"),
        (np.zeros((0, 3)), "the matrix is empty (0 x 3)"),
        (np.zeros((3, 0)), "the matrix is empty (3 x 0)"),
        (np.zeros((3, 2)), "every entry is 0"),
        (np.array([[1, -2.5]]), "row 1, column 2 (counted from 1) is -2.5"),
        (np.array([[1, 1], [np.nan, 1]], order="F"), "row 2, column 1 (counted from 1) is NaN"),
        (np.array([[1, 1], [1, np.inf]]), "row 2, column 2 (counted from 1) is inf"),
    ],
)
def test_npy_refused(tmp_path, array, words):
    np.save(tmp_path / "m.npy", array, allow_pickle=True)
    assert words in refused(tmp_path / "m.npy")


def sparse(dtype, shape=(23, 17)):
    random = np.random.default_rng(2)
    matrix = scipy.sparse.random(*shape, 0.2, "coo", random_state=random)
    matrix.data = np.ceil(matrix.data * 100)
    return matrix.astype(dtype)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_npz(tmp_path, dtype, layout, index, compressed):
    matrix = sparse(dtype).asformat(layout)
    for name in ["indices", "indptr"] if layout != "coo" else []:
        setattr(matrix, name, getattr(matrix, name).astype(index))
    if layout == "coo":
        matrix.coords = tuple(coordinate.astype(index) for coordinate in matrix.coords)
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, matrix, compressed=compressed)
    with np.load(path) as members:
        assert members["row" if layout == "coo" else "indices"].dtype == index
    assert same(path, matrix.toarray()) == f"SciPy sparse {layout}, {matrix.dtype.name}"


def test_npz_sparse_array_and_text_format(tmp_path):
    matrix = scipy.sparse.csr_array(sparse("f4"))
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, matrix)
    same(path, matrix.toarray())
    parts = dict(data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=matrix.shape)
    np.savez(path, format="csr", **parts)
    same(path, matrix.toarray())


def test_npz_not_canonical(tmp_path):
    path = tmp_path / "m.npz"
    data, row, col = [1.0, 2.0, 4.0, 8.0, 16.0], [1, 0, 1, 1, 2], [2, 3, 0, 2, 1]
    coo = scipy.sparse.coo_matrix((data, (row, col)), shape=(4, 5))
    scipy.sparse.save_npz(path, coo)
    same(path, coo.toarray())
    indices, indptr = [3, 1, 3, 0, 2, 1], [0, 3, 3, 5, 6]
    for kind, shape in [(scipy.sparse.csr_matrix, (4, 5)), (scipy.sparse.csc_matrix, (5, 4))]:
        matrix = kind(([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], indices, indptr), shape=shape)
        scipy.sparse.save_npz(path, matrix)
        same(path, matrix.toarray())


def test_npz_others(tmp_path):
    path = tmp_path / "m.npz"
    matrix = sparse("f8", (24, 16))
    scipy.sparse.save_npz(path, matrix.tobsr((2, 2)))
    assert 'the sparse format "bsr" is not supported' in refused(path)
    scipy.sparse.save_npz(path, matrix.todia())
    assert 'the sparse format "dia" is not supported' in refused(path)
    np.savez(path, first=np.ones((2, 2)), second=np.ones(3))
    assert "2 members (first.npy, second.npy)" in refused(path)
    np.savez(path, np.arange(6).reshape(2, 3))
    assert same(path, np.arange(6).reshape(2, 3)).endswith("in an .npz archive")
    np.savez_compressed(path, values("u1"))
    same(path, values("u1"))
    np.savez(path, np.arange(6))
    assert "1 dimension" in refused(path)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_mtx_coordinate(tmp_path, field, symmetry):
    path = tmp_path / "m.mtx"
    matrix = sparse("f8", (19, 19))
    if field == "real":
        matrix.data = values("f8", matrix.data.shape)
    if symmetry == "symmetric":
        matrix = matrix + matrix.T
    matrix = matrix.tocoo()
    written = matrix.astype(int) if field == "integer" else matrix
    scipy.io.mmwrite(path, written, comment="a comment\nof two lines", field=field, symmetry=symmetry)
    expected = scipy.io.mmread(path).toarray()
    assert same(path, expected) == f"Matrix Market coordinate, {field}, {symmetry}"
    np.testing.assert_array_equal(expected != 0, matrix.toarray() != 0)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer"])
def test_mtx_array(tmp_path, field, symmetry):
    path = tmp_path / "m.mtx"
    matrix = values("f8" if field == "real" else "i4", (6, 6)).astype("f8" if field == "real" else "i8")
    if symmetry == "symmetric":
        matrix = matrix + matrix.T
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry, precision=17)
    assert same(path, scipy.io.mmread(path)) == f"Matrix Market array, {field}, {symmetry}"
    np.testing.assert_allclose(scipy.io.mmread(path), matrix, rtol=1e-15)


def test_mtx_refused(tmp_path):
    path = tmp_path / "m.mtx"
    scipy.io.mmwrite(path, sparse("f8").astype(complex))
    assert "complex" in refused(path)
    scipy.io.mmwrite(path, np.array([[0.0, 1.0], [-1.0, 0.0]]), symmetry="skew-symmetric")
    assert "skew-symmetric" in refused(path)


@pytest.mark.parametrize("ending, delimiter", [("csv", ","), ("tsv", "\t")])
def test_tables_of_numpy(tmp_path, ending, delimiter):
    path = tmp_path / f"m.{ending}"
    for shape in [(1, 1), (1, 4), (4, 1), (30, 20)]:
        matrix = values("f8", shape)
        np.savetxt(path, matrix, delimiter=delimiter)
        expected = np.loadtxt(path, delimiter=delimiter, ndmin=2)
        same(path, expected)
        assert dump(path)[1:3] == (None, None)
        np.savetxt(path, matrix, delimiter=delimiter, header=delimiter.join(f"c{i}" for i in range(shape[1])))
        same(path, expected)
        assert dump(path)[1:3] == (None, [f"c{i}" for i in range(shape[1])])


@pytest.mark.parametrize(
    "text, rows, cols",
    [
        (",0,1\n0,1.5,2\n1,3,4e0\n", ["0", "1"], ["0", "1"]),
        (",a,b\nx,1.5,2\ny,3,4\n", ["x", "y"], ["a", "b"]),
        ("gene,a,b\r\nx,1.5,2\r\ny,3,4\r\n", ["x", "y"], ["a", "b"]),
        ("a,b\nx,1.5,2\ny,3,4", ["x", "y"], ["a", "b"]),
        ("a,b\n1.5,2\n3,4\n", None, ["a", "b"]),
        ("x,1.5,2\ny,3,4\n", ["x", "y"], None),
        ('"","a","b, c"\n"x ""1""",1.5,2\n"y",3,4\n', ['x "1"', "y"], ["a", "b, c"]),
        ("\ufeffa,b\n1.5,2\n3,4\n", None, ["a", "b"]),
        ("\ufeff1.5,2\n3,4\n", None, None),
        ("1.5, 2\n 3 ,4\n\n", None, None),
    ],
)
def test_labelled_tables(tmp_path, text, rows, cols):
    path = tmp_path / "m.csv"
    path.write_text(text, encoding="utf-8", newline="")
    same(path, [[1.5, 2], [3, 4]])
    assert dump(path)[1:3] == (rows, cols)


def test_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    matrix = np.random.default_rng(3).random((5, 3))
    named = pandas.DataFrame(matrix, index=list("vwxyz"), columns=["a", "b", "c"])
    for frame in [named, pandas.DataFrame(matrix)]:
        for ending, delimiter in [("csv", ","), ("tsv", "\t")]:
            path = tmp_path / f"m.{ending}"
            frame.to_csv(path, sep=delimiter)
            same(path, matrix)
            assert dump(path)[1:3] == ([str(name) for name in frame.index], [str(name) for name in frame.columns])


def real(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path


def totals(path):
    rows, cols, total, _ = subprocess.run(
        [DUMP, str(path), "--f32", "--time"], capture_output=True, text=True, check=True
    ).stdout.split()
    return int(rows), int(cols), float(total)


def test_real_counts_in_two_formats():
    """In f32; entry by entry they are compared in `test_formats.py`."""
    expected = scipy.sparse.load_npz(real("pbmc3k.npz"))
    for name in ["pbmc3k.npz", "pbmc3k.mtx.gz"]:
        assert totals(real(name)) == (*expected.shape, expected.sum(dtype=np.float64))


def test_real_images():
    with gzip.open(real("mnist.npy.gz")) as file:
        expected = np.load(file)
    assert totals(real("mnist.npy.gz")) == (*expected.shape, expected.sum())


def test_real_text():
    expected = scipy.sparse.load_npz(real("rcv1.npz"))
    rows, cols, total = totals(real("rcv1.npz"))
    assert (rows, cols) == expected.shape
    assert total == pytest.approx(expected.sum(dtype=np.float64), rel=1e-12)
