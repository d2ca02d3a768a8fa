"""NMF of an AnnData object, in the manner of scanpy."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from partwise._nmf import NMF
from partwise._types import Parameters, Seed

#: Marks scanpy's default mask, because None means no mask there.
HIGHLY_VARIABLE: Any = "highly_variable, if adata.var has it"


def nmf(
    adata: Any,
    n_components: int,
    *,
    layer: str | None = None,
    mask_var: str | Any | None = HIGHLY_VARIABLE,
    key_added: str | None = None,
    copy: bool = False,
    random_state: Seed = 0,
    **parameters: Unpack[Parameters],
) -> Any:
    """Factorize the cells x genes matrix of an AnnData object.

    Parameters
    ----------
    adata : AnnData
        Cells by genes with nonnegative entries: counts, or normalized and
        log-transformed values, but not scaled ones.
    n_components : int
        Number of components.
    layer : str, default=None
        The layer to factorize; ``X`` if None.
    mask_var : str or array of bool or None
        Genes to use: a column of ``adata.var`` or a mask; None for all genes. By
        default those of ``adata.var["highly_variable"]`` where it exists, as in
        scanpy's PCA.
    key_added : str, default=None
        Key for all three results, instead of the names below.
    copy : bool, default=False
        Return a changed copy instead of changing ``adata``.
    random_state : int, RandomState instance or None, default=0
        The seed.
    **parameters
        Other parameters of :class:`NMF`.

    Returns
    -------
    AnnData or None
        The copy, if ``copy`` is true. The results are

        - ``obsm["X_nmf"]``: the weight of each component in each cell;
        - ``varm["NMF"]``: the weight of each gene in each component, 0 for
          unused genes;
        - ``uns["nmf"]``: ``params``, ``relative_error``, ``n_iter`` and
          ``trace``.

    Examples
    --------
    >>> import numpy as np
    >>> import partwise
    >>> from anndata import AnnData
    >>> counts = np.random.default_rng(0).poisson(1.0, (50, 30)).astype("float32")
    >>> adata = AnnData(counts)
    >>> partwise.nmf(adata, 4)
    >>> adata.obsm["X_nmf"].shape, adata.varm["NMF"].shape
    ((50, 4), (30, 4))
    """
    if not all(hasattr(adata, name) for name in ("obsm", "varm", "uns", "layers")):
        raise TypeError(
            f"nmf takes an AnnData object, not {type(adata).__name__}; use partwise.NMF for arrays"
        )
    if copy:
        # A backed object can only be copied to another file.
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer {layer!r} is not in adata.layers; give one of {list(adata.layers)}")
    X = adata.X if layer is None else adata.layers[layer]
    mask, used = _mask(adata, mask_var)
    if mask is not None:
        X = X[:, mask]
    elif hasattr(X, "to_memory"):
        # A sparse matrix in a file, which only AnnData can read.
        X = X.to_memory()
    # An array, whatever output scikit-learn is configured for.
    model = NMF(n_components, random_state=random_state, **parameters).set_output(transform="default")
    W = model.fit_transform(X)
    H = np.zeros((adata.n_vars, model.n_components_), dtype=W.dtype)
    H[slice(None) if mask is None else mask] = model.components_.T
    obsm, varm, uns = (key_added,) * 3 if key_added else ("X_nmf", "NMF", "nmf")
    adata.obsm[obsm] = W
    adata.varm[varm] = H
    given: dict[str, Any] = {"n_components": n_components, "random_state": random_state, "layer": layer, "mask_var": used}
    given.update(parameters)
    adata.uns[uns] = {
        # An .h5ad file cannot store None, generators or functions.
        "params": {name: value for name, value in given.items() if isinstance(value, (bool, int, float, str, np.generic))},
        "relative_error": model.relative_error_,
        "n_iter": model.n_iter_,
        "trace": model.trace_,
    }
    return adata if copy else None


def _mask(adata: Any, mask_var: Any) -> tuple[Any, str | None]:
    """The genes to use, None for all, and the name of the mask if it has one."""
    if mask_var is HIGHLY_VARIABLE:
        mask_var = "highly_variable" if "highly_variable" in adata.var else None
    if mask_var is None:
        return None, None
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(f"mask_var {mask_var!r} is not in adata.var; give one of {list(adata.var)}")
        return np.asarray(adata.var[mask_var], dtype=bool), mask_var
    mask = np.asarray(mask_var, dtype=bool)
    if mask.shape != (adata.n_vars,):
        raise ValueError(f"mask_var has the shape {mask.shape}; give one entry for each of {adata.n_vars} genes")
    return mask, None
