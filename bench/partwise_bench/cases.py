"""The cases: a matrix and a number of components, such as `mnist-20`, and the common start."""

import dataclasses
import gzip
import os
import pathlib
import subprocess

import numpy as np
import scipy.sparse

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("PARTWISE_DATA", ROOT.parent / "shared/data"))
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PROGRAM = pathlib.Path(os.environ.get("PARTWISE_BIN", BUILT / "release/partwise"))
# Raw results, starts and converted matrices, which do not belong in the repository.
WORK = BUILT / "bench"

FILES = {
    "mnist": "mnist.npy.gz",
    "boats": "boats.zip",
    "face": "face.npy.gz",
    "rcv1": "rcv1.npz",
    "newsgroups": "newsgroups.npz",
    "pbmc3k": "pbmc3k.npz",
    "dblp": "dblp.npz",
}
RANKS = [20, 100]
QUICK = ["face-20", "mnist-20", "newsgroups-20"]


@dataclasses.dataclass(frozen=True)
class Case:
    data: str
    k: int

    @staticmethod
    def parse(name):
        data, _, k = name.rpartition("-")
        if data not in FILES or not k.isdigit() or int(k) == 0:
            raise SystemExit(f"{name!r} is no case; give NAME-K with NAME one of {', '.join(FILES)}")
        return Case(data, int(k))

    def __str__(self):
        return f"{self.data}-{self.k}"

    @property
    def file(self):
        return DATA / FILES[self.data]

    def is_here(self):
        if not self.file.exists():
            print(f"{self} is left out: {self.file} is missing; PARTWISE_DATA names the folder of the matrices")
        return self.file.exists()

    @property
    def start(self):
        """A folder with the factors to begin with, as `--init-from` and scikit-learn's init='custom' take them."""
        folder = WORK / "starts" / str(self)
        if not (folder / "V.npy").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name, factor in zip("UV", random_start(load(self.file), self.k)):
                np.save(folder / f"{name}.npy", factor)
        return folder


def everything():
    return [Case(data, k) for data in FILES for k in RANKS]


def random_start(matrix, k):
    """Scikit-learn's random start: absolute normal numbers at the scale of M's mean."""
    random = np.random.default_rng(0)
    scale = np.sqrt(matrix.mean(dtype=np.float64) / k)
    return [np.abs(scale * random.standard_normal((side, k))).astype(np.float32) for side in matrix.shape]


def load(file):
    """The matrix in float32, as NumPy array or SciPy CSR."""
    file = pathlib.Path(file)
    if file.suffix == ".npz":
        return scipy.sparse.csr_matrix(scipy.sparse.load_npz(file), dtype=np.float32)
    if file.suffix == ".zip":
        file = converted(file)
    with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as stream:
        return np.ascontiguousarray(np.load(stream), dtype=np.float32)


def converted(images):
    """Images as Partwise reads them: another JPEG decoder would give other bytes, and another matrix."""
    array = WORK / "converted" / f"{images.stem}.npy"
    if not array.exists():
        array.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PROGRAM, "convert", images, array], check=True, stdout=subprocess.DEVNULL)
    return array
