"""Writes the .h5ad files of this folder: [[1, 0, 2], [0, 0, 0], [4, 0, 0], [0, 8, 0]], as small as h5py makes them."""

import h5py
import numpy as np
import scipy.sparse

matrix = np.array([[1, 0, 2], [0, 0, 0], [4, 0, 0], [0, 8, 0]], np.float32)
for name, value in [("dense", matrix), ("csr", scipy.sparse.csr_matrix(matrix)), ("csc", scipy.sparse.csc_matrix(matrix))]:
    with h5py.File(f"{name}.h5ad", "w", libver=None if name == "dense" else "latest") as file:
        if name == "dense":
            file.create_dataset("X", data=value, chunks=(2, 2), compression="gzip", shuffle=True)
        else:
            group = file.create_group("X")
            group.attrs["encoding-type"] = f"{name}_matrix"
            group.attrs["shape"] = value.shape
            for part in ["data", "indices", "indptr"]:
                group.create_dataset(part, data=getattr(value, part), maxshape=(None,), compression="gzip" if name == "csr" else "lzf")
        for table, names in [("obs", ["a", "b", "c", "d"]), ("var", ["x", "y", "ä"])]:
            group = file.create_group(table)
            group.attrs["_index"] = "_index"
            group.create_dataset("_index", data=names, dtype=h5py.string_dtype())
