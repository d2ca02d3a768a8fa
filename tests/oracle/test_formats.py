"""Formats against NumPy, SciPy, Pillow and anndata, through the program itself."""

import gzip
import io
import itertools
import json
import struct
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

ENDINGS = ["npy", "npz", "mtx", "csv", "tsv", "bin"]


def dense(kind, shape=(41, 23)):
    """Numbers that use the type's range, some of them 0."""
    rng = np.random.default_rng(3)
    if kind == "u1":
        matrix = rng.integers(0, 256, shape).astype("u1")
    else:
        matrix = (rng.random(shape) * 10.0 ** rng.integers(-30, 30, shape)).astype(kind)
    matrix[rng.random(shape) < 0.6] = 0
    matrix[0, 0] = 1
    return matrix


def read_bin(data):
    """The paper's format, by its description."""
    if data[0] == 0:
        m, n = struct.unpack_from("<2i", data, 1)
        width = (len(data) - 9) // (m * n)
        return np.frombuffer(data, f"<f{width}", offset=9).reshape(m, n)
    assert data[0] == 1
    m, n, nnz = struct.unpack_from("<3i", data, 1)
    start = 13 + 4 * (m + 1 + nnz)
    indptr = np.frombuffer(data, "<i4", m + 1, 13)
    indices = np.frombuffer(data, "<i4", nnz, 13 + 4 * (m + 1))
    values = np.frombuffer(data, f"<f{(len(data) - start) // nnz}", offset=start)
    return sp.csr_matrix((values, indices, indptr), shape=(m, n))


def write_bin(matrix):
    if sp.issparse(matrix):
        head = struct.pack("<b3i", 1, *matrix.shape, matrix.nnz)
        parts = [matrix.indptr.astype("<i4"), matrix.indices.astype("<i4"), matrix.data]
        return head + b"".join(part.tobytes() for part in parts)
    return struct.pack("<b2i", 0, *matrix.shape) + np.ascontiguousarray(matrix).tobytes()


def read(path):
    """The content of a file according to NumPy and SciPy, before any conversion."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data, path = gzip.decompress(data), path.with_suffix("")
    stream = io.BytesIO(data)
    return {
        ".npy": lambda: np.load(stream),
        ".npz": lambda: sp.load_npz(stream),
        ".mtx": lambda: scipy.io.mmread(stream),
        ".csv": lambda: np.loadtxt(stream, delimiter=",", ndmin=2),
        ".tsv": lambda: np.loadtxt(stream, delimiter="\t", ndmin=2),
        ".bin": lambda: read_bin(data),
    }[path.suffix]()


def widened(found):
    found = found.toarray() if sp.issparse(found) else found
    return np.asarray(found, np.float64)


def write(path, matrix):
    """Writes a file without the program, with NumPy, SciPy or by the format's description."""
    ending = path.suffix[1:]
    if ending == "npy":
        np.save(path, np.asfortranarray(matrix))
    elif ending == "npz":
        sp.save_npz(path, sp.csr_matrix(matrix))
    elif ending == "mtx":
        scipy.io.mmwrite(path, sp.csr_matrix(matrix, dtype="f8"), precision=17)
    elif ending == "bin":
        path.write_bytes(write_bin(matrix if matrix.dtype.kind == "f" else matrix.astype("f4")))
    else:
        np.savetxt(path, matrix, delimiter={"csv": ",", "tsv": "\t"}[ending], fmt="%.17g")


@pytest.mark.parametrize("kind", ["u1", "f4", "f8"])
@pytest.mark.parametrize("source, target", list(itertools.product(ENDINGS, ENDINGS)))
def test_every_pair(partwise, tmp_path, source, target, kind):
    matrix = dense(kind)
    file = tmp_path / f"in.{source}"
    write(file, matrix)
    for ending in [target, f"{target}.gz"]:
        out = tmp_path / f"out.{ending}"
        partwise("convert", file, out)
        np.testing.assert_array_equal(widened(read(out)), matrix.astype("f8"))
        back = tmp_path / f"back.{source}.gz"
        partwise("convert", out, back, "--force")
        np.testing.assert_array_equal(widened(read(back)), matrix.astype("f8"))
        partwise("convert", file, out, "--transpose", "--force")
        np.testing.assert_array_equal(widened(read(out)), matrix.T.astype("f8"))


@pytest.mark.parametrize("kind, found", [("u1", "u1"), ("u2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i8", "f8")])
def test_types_are_kept(partwise, tmp_path, kind, found):
    matrix = dense("u1").astype(kind)
    np.save(tmp_path / "in.npy", matrix)
    partwise("convert", tmp_path / "in.npy", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").dtype == found
    partwise("convert", tmp_path / "in.npy", tmp_path / "out.npz")
    assert sp.load_npz(tmp_path / "out.npz").dtype == ("f4" if found == "u1" else found)
    for precision in ["f32", "f64"]:
        partwise("convert", tmp_path / "in.npy", tmp_path / "out.npy", "--force", "--precision", precision)
        assert np.load(tmp_path / "out.npy").dtype == precision.replace("32", "4").replace("64", "8")


def test_matrix_market_fields(partwise, tmp_path):
    for kind, field in [("u1", "integer"), ("f8", "real")]:
        for ending, layout in [("npy", "array"), ("npz", "coordinate")]:
            write(tmp_path / f"in.{ending}", dense(kind))
            partwise("convert", tmp_path / f"in.{ending}", tmp_path / "out.mtx", "--force")
            assert scipy.io.mminfo(tmp_path / "out.mtx")[3:5] == (layout, field)


@pytest.mark.parametrize("name", ["rcv1.npz", "pbmc3k.npz", "pbmc3k.mtx.gz", "mnist.npy.gz"])
def test_real_matrices(partwise, data, tmp_path, name):
    file = data(name)
    known = read(file)
    for ending in ["npz", "bin"] if sp.issparse(known) else ["npy", "bin", "npz"]:
        out = tmp_path / f"out.{ending}"
        partwise("convert", file, out)
        found = read(out)
        assert found.shape == known.shape and abs(sp.csr_matrix(found) - sp.csr_matrix(known)).nnz == 0


PIL = pytest.importorskip("PIL.Image")


def frames(folder):
    """Images of every kind that becomes RGB, and the expected matrix."""
    rng = np.random.default_rng(5)
    pixels = rng.integers(0, 256, (4, 12, 17, 3)).astype("u1")
    PIL.fromarray(pixels[0]).save(folder / "b.png")
    PIL.fromarray(pixels[1]).quantize(64).save(folder / "c.png")
    pixels[1] = np.asarray(PIL.open(folder / "c.png").convert("RGB"))
    alpha = rng.integers(0, 256, (12, 17, 1)).astype("u1")
    PIL.fromarray(np.concatenate([pixels[2], alpha], axis=2)).save(folder / "A.png")
    PIL.fromarray(pixels[3]).save(folder / "a.PNG", format="png", optimize=True)
    (folder / "notes.txt").write_text("no image")
    return pixels[[2, 3, 0, 1]].reshape(4, -1), ["A.png", "a.PNG", "b.png", "c.png"]


def test_png_in_a_folder_and_a_zip(partwise, tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    expected, names = frames(folder)
    with zipfile.ZipFile(tmp_path / "frames.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("__MACOSX")
        archive.writestr("__MACOSX/._A.png", b"resource fork")
        for file in folder.iterdir():
            archive.write(file, file.name)
    for source in ["frames", "frames.zip"]:
        partwise("convert", tmp_path / source, tmp_path / "M.npy", "--force")
        found = np.load(tmp_path / "M.npy")
        assert found.dtype == np.uint8 and found.flags.f_contiguous
        np.testing.assert_array_equal(found, expected.T)
        partwise("convert", tmp_path / source, tmp_path / "M.npy", "--force", "--images", "rows")
        np.testing.assert_array_equal(np.load(tmp_path / "M.npy"), expected)
        partwise("convert", tmp_path / source, tmp_path / "M.csv", "--force")
        assert (tmp_path / "M.csv").read_text().split("\n")[0].split(",") == names
        words = json.loads(partwise("inspect", tmp_path / source, "--json"))["format"]
        assert words.endswith(", palettes expanded, transparency dropped")


@pytest.mark.parametrize("mode", ["1", "L", "I;16", "LA"])
def test_grey_png(partwise, tmp_path, mode):
    rng = np.random.default_rng(6)
    (tmp_path / "frames").mkdir()
    grey = rng.integers(0, 256, (9, 14)).astype("u1")
    if mode == "1":
        grey = np.where(grey > 128, 255, 0).astype("u1")
        picture = PIL.fromarray(grey).convert("1")
    elif mode == "I;16":
        wide = rng.integers(0, 65536, (9, 14)).astype("u2")
        picture = PIL.fromarray(wide)
        grey = ((wide.astype("u4") + 128) // 257).astype("u1")
    elif mode == "LA":
        picture = PIL.merge("LA", [PIL.fromarray(grey), PIL.fromarray(grey[::-1].copy())])
    else:
        picture = PIL.fromarray(grey)
    picture.save(tmp_path / "frames" / "a.png")
    partwise("convert", tmp_path / "frames", tmp_path / "M.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "M.npy")[:, 0], grey.ravel())


def close_to_libjpeg(found, expected):
    """Decoders may differ in the last bit of a transform, and a little more where colour is interpolated."""
    difference = np.abs(found.astype("i2") - expected.astype("i2"))
    assert difference.mean() < 0.5 and (difference > 8).mean() < 1e-3, (difference.mean(), difference.max())


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 30}])
def test_jpeg(partwise, tmp_path, options):
    (tmp_path / "frames").mkdir()
    y, x = np.mgrid[:61, :83]
    smooth = np.stack([128 + 100 * np.sin(x / 9), 3 * y, 2 * x], axis=2).clip(0, 255).astype("u1")
    PIL.fromarray(smooth).save(tmp_path / "frames" / "a.jpg", **options)
    partwise("convert", tmp_path / "frames", tmp_path / "M.npy")
    expected = np.asarray(PIL.open(tmp_path / "frames" / "a.jpg"))
    close_to_libjpeg(np.load(tmp_path / "M.npy")[:, 0], expected.ravel())


def test_boats(partwise, factorize, data, tmp_path):
    file = data("boats.zip")
    partwise("convert", file, tmp_path / "M.npy")
    found = np.load(tmp_path / "M.npy")
    assert found.shape == (230400, 300) and found.dtype == np.uint8
    with zipfile.ZipFile(file) as archive:
        for column, name in list(enumerate(sorted(archive.namelist())))[::30]:
            close_to_libjpeg(found[:, column], np.asarray(PIL.open(archive.open(name))).ravel())
    _, _, record = factorize(file, "--rank", 3, "--iterations", 5)
    assert record["image"] == {"width": 320, "height": 240, "channels": 3, "images": "columns"}


def annotated(matrix):
    anndata = pytest.importorskip("anndata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = anndata.AnnData(matrix)
    result.obs_names = [f"cell {number}" for number in range(matrix.shape[0])]
    result.var_names = [f"gène{number}" for number in range(matrix.shape[1])]
    result.obs["batch"] = "one"
    return result


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("kind", ["u1", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_h5ad(partwise, tmp_path, layout, kind, compression):
    matrix = dense("u1").astype(kind) if kind != "f8" else dense("f8")
    result = annotated(layout(matrix))
    result.write_h5ad(tmp_path / "M.h5ad", compression=compression)
    partwise("convert", tmp_path / "M.h5ad", tmp_path / "M.csv")
    header, *lines = (tmp_path / "M.csv").read_text().split("\n")
    assert header.split(",") == ["", *result.var_names]
    assert [line.split(",")[0] for line in lines[:-1]] == list(result.obs_names)
    partwise("convert", tmp_path / "M.h5ad", tmp_path / "M.npy")
    np.testing.assert_array_equal(widened(read(tmp_path / "M.npy")), matrix.astype("f8"))


def test_h5ad_of_many_names(partwise, data, tmp_path):
    known = sp.load_npz(data("rcv1.npz"))
    annotated(known).write_h5ad(tmp_path / "M.h5ad", compression="gzip")
    partwise("convert", tmp_path / "M.h5ad", tmp_path / "M.npz")
    assert abs(sp.load_npz(tmp_path / "M.npz") - known).nnz == 0
