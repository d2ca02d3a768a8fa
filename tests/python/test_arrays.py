"""The supported inputs, their types, and that nothing is copied unnecessarily."""

import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from partwise import NMF, non_negative_factorization, simulate
from partwise._checks import readable

RNG = np.random.default_rng(0)
BYTES = (RNG.random((50, 30)) ** 3 * 255).astype(np.uint8)


def fitted(X):
    model = NMF(4, init="random", solver="hals", random_state=0, tol=0, max_iter=10)
    W = model.fit_transform(X)
    return W, model.components_


def explicit(array):
    """The same numbers with little-endian order by name, as files have it; NumPy keeps the difference."""
    return array.view(array.dtype.newbyteorder("<"))


def unaligned(array):
    shifted = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    assert not shifted.flags.aligned
    return shifted


def rebuilt(csr, change, parts=("data", "indices", "indptr")):
    """A matrix of changed arrays, as no constructor of SciPy's would make it."""
    csr = csr.copy()
    for part in parts:
        setattr(csr, part, change(getattr(csr, part)))
    return csr


def forms(X):
    """One matrix in all the ways it can be given."""
    csr = sp.csr_array(X)
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = csr.copy()
    for first, end in zip(csr.indptr, csr.indptr[1:]):
        unsorted.indices[first:end] = csr.indices[first:end][::-1]
        unsorted.data[first:end] = csr.data[first:end][::-1]
    unsorted.has_canonical_format = unsorted.has_sorted_indices = False
    twice = sp.coo_array((np.r_[csr.data, csr.data] / 2, np.tile(csr.tocoo().coords, 2)), shape=csr.shape)
    parts = np.repeat(csr.data, 2) / 2, np.repeat(csr.indices, 2), 2 * csr.indptr
    strided = np.zeros((100, 60), X.dtype)
    strided[::2, ::2] = X
    return {
        "C order": np.ascontiguousarray(X),
        "Fortran order": np.asfortranarray(X),
        "strided": strided[::2, ::2],
        "read only": np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
        "csr array": csr,
        "csr matrix": sp.csr_matrix(X),
        "csc": sp.csc_array(X),
        "64-bit indices": wide,
        "unsorted": unsorted,
        "coo with duplicates": twice,
        "csr with duplicates": sp.csr_array(parts, shape=csr.shape),
        "explicit little-endian": explicit(X),
        "explicit little-endian, Fortran order": explicit(np.asfortranarray(X)),
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
        "unaligned": unaligned(X),
        "nothing masked": np.ma.array(X, mask=np.zeros(X.shape, bool)),
        "csr, explicit little-endian": rebuilt(csr, explicit),
        "csc, explicit little-endian": rebuilt(sp.csc_array(X), explicit),
        # SciPy has no big-endian numbers.
        "csr, big-endian indices": rebuilt(csr, lambda part: part.astype(">i4"), ("indices", "indptr")),
        "csr, unaligned": rebuilt(csr, unaligned),
        "csr, strided": rebuilt(csr, lambda part: np.repeat(part, 2)[::2]),
        "csr, 16-bit indices": rebuilt(csr, lambda part: part.astype(np.int16), ("indices", "indptr")),
        "list": X.tolist(),
    }


@pytest.mark.parametrize("form", forms(BYTES.astype(float)))
def test_every_form_gives_the_same_factors(form):
    X = BYTES.astype(float)
    before = forms(X)[form]
    kept = before.copy()
    W, H = fitted(before)
    expected = fitted(X)
    np.testing.assert_allclose(W, expected[0], atol=1e-8)
    np.testing.assert_allclose(H, expected[1], atol=1e-8)
    if sp.issparse(before):
        for part in ("data", "indices", "indptr") if before.format != "coo" else ("data", "row", "col"):
            np.testing.assert_array_equal(getattr(before, part), getattr(kept, part))


@pytest.mark.parametrize("form", forms(BYTES.astype(float)))
def test_every_form_can_be_transformed_and_simulated(form):
    X = BYTES.astype(float)
    model = NMF(4, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(forms(X)[form]), model.transform(X), atol=1e-8)
    given = forms(X)[form]
    kept = given.copy()
    found = simulate(given, 2, parties=3, rounds=3)
    np.testing.assert_allclose(found.V, simulate(X, 2, parties=3, rounds=3).V, atol=1e-8)
    if sp.issparse(given) and given.format != "coo":
        np.testing.assert_array_equal(given.indices, kept.indices)


@pytest.mark.parametrize("form", ["csr array", "csr, explicit little-endian", "explicit little-endian", "C order"])
def test_single_precision_stays_single(form):
    X = BYTES.astype(np.float32)
    given = forms(X)[form]
    assert fitted(given)[0].dtype == simulate(given, 2, parties=3, rounds=3).V.dtype == np.float32
    np.testing.assert_allclose(fitted(given)[0], fitted(X)[0], atol=1e-3)


def test_matrices_of_other_programs():
    file = io.BytesIO()
    X = BYTES.astype(float)
    scipy.io.savemat(file, {"X": X, "S": sp.csc_array(X)})
    loaded = scipy.io.loadmat(file)
    for name in ("X", "S"):
        np.testing.assert_allclose(fitted(loaded[name])[0], fitted(X)[0], atol=1e-8)


def test_given_factors_in_any_form():
    X = BYTES.astype(float)
    W, H = RNG.random((50, 3)), RNG.random((3, 30))
    expected = NMF(3, init="custom", max_iter=3, tol=0).fit_transform(X, W=W, H=H)
    for change in (explicit, unaligned, np.asfortranarray, lambda array: np.repeat(array, 2, axis=1)[:, ::2]):
        found = NMF(3, init="custom", max_iter=3, tol=0).fit_transform(X, W=change(W), H=change(H))
        np.testing.assert_array_equal(found, expected)
        solved = non_negative_factorization(X, H=change(H), n_components=3, update_H=False)[0]
        np.testing.assert_array_equal(solved, non_negative_factorization(X, H=H, n_components=3, update_H=False)[0])


def test_masked_entries_are_refused():
    X = np.ma.array(BYTES, mask=BYTES > 250, dtype=float)
    model = NMF(2).fit(BYTES)
    given = lambda X: NMF(30, init="custom").fit(BYTES, W=X, H=np.ones((30, 30)))  # noqa: E731
    for call in (NMF(2).fit, model.transform, lambda X: simulate(X, 2), given):
        with pytest.raises(ValueError, match="masked entries"):
            call(X)


@pytest.mark.parametrize(
    "given, computed",
    [("float64", "float64"), ("float32", "float32"), ("uint8", "float64"), ("int32", "float64"), ("bool", "float64"),
     (">f8", "float64"), ("float16", "float64")],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_types(given, computed, sparse):
    if sparse and given in ("float16", ">f8"):
        return  # Not for SciPy.
    X = (BYTES > 50).astype(given)
    W, H = fitted(sp.csr_array(X) if sparse else X)
    assert W.dtype == H.dtype == np.dtype(computed)
    expected = fitted(X.astype(computed))
    np.testing.assert_allclose(W, expected[0], atol=1e-4 if computed == "float32" else 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_arrays_are_handed_over_as_they_are(dtype, order):
    X = np.asarray(BYTES, dtype, order=order)
    assert np.shares_memory(readable(X), X)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_matrices_are_handed_over_as_they_are(container):
    X = container(BYTES.astype(np.float32))
    assert readable(X) is X


PEAKS = """
import numpy as np, scipy.sparse as sp
from partwise import NMF

def peak():
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

def grown(X):
    open("/proc/self/clear_refs", "w").write("5")  # The peak is what there is now.
    before = peak()
    NMF(2, init="random", max_iter=3, tol=0).fit(X)
    return peak() - before

grown(np.ones((1000, 100)))
for dtype in ("float64", "float32", "uint8"):
    for order in "CF":
        X = np.ones((10_000, 2000), dtype, order=order)
        print(dtype, order, grown(X) / X.nbytes)
indices = (np.arange(20_000)[:, None] % 20 + 20 * np.arange(250)).astype(np.int32)
X = sp.csr_array((np.ones(indices.size), indices.ravel(), np.arange(0, indices.size + 1, 250, dtype=np.int32)))
for X in (X, X.tocsc()):
    print(X.format, "-", grown(X) / (X.data.nbytes + X.indices.nbytes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are Linux's")
def test_a_fit_needs_no_room_for_a_copy():
    """By how much a fit raises the peak of the memory, in shares of X."""
    done = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 8
    for kind, order, share in lines:
        # A sparse matrix is also stored by its other side. In addition to X there are factors, which are small except for bytes.
        assert float(share) < (1.5 if kind in ("csr", "csc") else 0.5), (kind, order, share)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_memory_maps_larger_than_the_memory_allowed(tmp_path):
    """The data segment may grow by 128 MiB, for a file of 512: a copy, or half of one, would not fit."""
    program = f"""
import resource, numpy as np
from partwise import NMF
X = np.lib.format.open_memmap({str(tmp_path / "X.npy")!r}, "w+", np.float64, (65536, 1024))
X[:, 0] = 1; X[::2, 1::2] = 2
X.flush()
del X
NMF(2, init="random", max_iter=1, tol=0).fit(np.ones((100, 100)))
X = np.load({str(tmp_path / "X.npy")!r}, mmap_mode="r")
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + 2**27, resource.RLIM_INFINITY))
try:
    np.array(X)
    raise SystemExit("the limit does not hold")
except MemoryError:
    pass
model = NMF(2, init="random", solver="hals", max_iter=5, tol=0).fit(X)
print(model.relative_error_)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.05
