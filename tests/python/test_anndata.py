"""NMF of AnnData objects."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn

import partwise

anndata = pytest.importorskip("anndata")


@pytest.fixture
def adata():
    counts = np.random.default_rng(0).poisson(1.0, (40, 25)).astype(np.float32)
    adata = anndata.AnnData(sp.csr_matrix(counts), layers={"twice": 2 * counts})
    adata.var["some"] = np.arange(25) % 2 == 0
    return adata


def test_where_scanpy_users_look(adata, tmp_path):
    assert partwise.nmf(adata, 3, max_iter=50, tol=0) is None
    model = partwise.NMF(3, random_state=0, max_iter=50, tol=0)
    np.testing.assert_array_equal(adata.obsm["X_nmf"], model.fit_transform(adata.X))
    np.testing.assert_array_equal(adata.varm["NMF"], model.components_.T)
    assert adata.uns["nmf"]["params"] == {"n_components": 3, "random_state": 0, "max_iter": 50, "tol": 0}
    # All of it can be saved.
    adata.write_h5ad(tmp_path / "adata.h5ad")
    again = anndata.read_h5ad(tmp_path / "adata.h5ad")
    assert again.uns["nmf"]["n_iter"] == 50 and len(again.uns["nmf"]["trace"]) == 51
    np.testing.assert_array_equal(again.varm["NMF"], adata.varm["NMF"])


def test_layers_masks_keys_and_copies(adata):
    changed = partwise.nmf(adata, 2, layer="twice", mask_var="some", key_added="parts", copy=True)
    assert not adata.obsm and not adata.uns
    assert changed.obsm["parts"].shape == (40, 2) and changed.uns["parts"]["params"]["mask_var"] == "some"
    assert (changed.varm["parts"][1::2] == 0).all() and (changed.varm["parts"][::2] > 0).any()
    mask = partwise.nmf(adata, 2, layer="twice", mask_var=adata.var["some"].to_numpy(), copy=True)
    np.testing.assert_array_equal(mask.varm["NMF"], changed.varm["parts"])
    adata.var["highly_variable"] = adata.var["some"]
    variable = partwise.nmf(adata, 2, layer="twice", copy=True)
    np.testing.assert_array_equal(variable.varm["NMF"], changed.varm["parts"])
    everything = partwise.nmf(adata, 2, layer="twice", mask_var=None, copy=True)
    assert (everything.varm["NMF"][1::2] > 0).any() and "mask_var" not in everything.uns["nmf"]["params"]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("mask_var", ["some", None])
def test_backed_by_a_file(adata, tmp_path, sparse, mask_var):
    if not sparse:
        adata.X = adata.X.toarray()
    expected = partwise.nmf(adata, 3, mask_var=mask_var, max_iter=20, tol=0, copy=True)
    adata.write_h5ad(tmp_path / "adata.h5ad")
    backed = anndata.read_h5ad(tmp_path / "adata.h5ad", backed="r")
    copied = partwise.nmf(backed, 3, mask_var=mask_var, max_iter=20, tol=0, copy=True)
    partwise.nmf(backed, 3, mask_var=mask_var, max_iter=20, tol=0)
    for found in (copied, backed):
        np.testing.assert_array_equal(found.obsm["X_nmf"], expected.obsm["X_nmf"])


def test_parameters_that_a_file_cannot_hold(adata, tmp_path):
    partwise.nmf(
        adata, np.int64(3), random_state=np.random.RandomState(0), tol=np.float32(0), max_iter=np.int32(5),
        callback=lambda progress: None, verbose=False,
    )
    adata.write_h5ad(tmp_path / "adata.h5ad")
    params = anndata.read_h5ad(tmp_path / "adata.h5ad").uns["nmf"]["params"]
    assert set(params) == {"n_components", "tol", "max_iter", "verbose"} and params["max_iter"] == 5


def test_transformers_of_data_frames(adata):
    pytest.importorskip("pandas")
    with sklearn.config_context(transform_output="pandas"):
        partwise.nmf(adata, 3, max_iter=5, tol=0)
        W, H, _ = partwise.non_negative_factorization(adata.X, n_components=3, max_iter=5, tol=0)
    assert isinstance(adata.obsm["X_nmf"], np.ndarray) and isinstance(W, np.ndarray)


def test_errors(adata):
    with pytest.raises(TypeError, match="nmf takes an AnnData object, not ndarray"):
        partwise.nmf(np.ones((3, 3)), 2)
    with pytest.raises(ValueError, match="layer 'none' is not in adata.layers"):
        partwise.nmf(adata, 2, layer="none")
    with pytest.raises(ValueError, match="mask_var 'none' is not in adata.var"):
        partwise.nmf(adata, 2, mask_var="none")
    with pytest.raises(ValueError, match="one entry for each of 25 genes"):
        partwise.nmf(adata, 2, mask_var=[True])
