"""NMF of AnnData objects."""

import numpy as np
import pytest
import scipy.sparse as sp

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


def test_errors(adata):
    with pytest.raises(TypeError, match="nmf takes an AnnData object, not ndarray"):
        partwise.nmf(np.ones((3, 3)), 2)
    with pytest.raises(ValueError, match="layer 'none' is not in adata.layers"):
        partwise.nmf(adata, 2, layer="none")
    with pytest.raises(ValueError, match="mask_var 'none' is not in adata.var"):
        partwise.nmf(adata, 2, mask_var="none")
    with pytest.raises(ValueError, match="one entry for each of 25 genes"):
        partwise.nmf(adata, 2, mask_var=[True])
