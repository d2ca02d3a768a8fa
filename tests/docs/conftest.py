"""The path of the program, which the environment can set."""

import os
from pathlib import Path

import pytest
from pages import ROOT


@pytest.fixture(scope="session")
def program() -> Path:
    found = Path(os.environ.get("PARTWISE_BIN", ROOT / "target/release/partwise"))
    assert found.exists(), f"{found} is not built"
    return found


@pytest.fixture(scope="session")
def mpi() -> bool:
    """Whether the program was built with MPI and `mpirun` is installed."""
    return os.environ.get("PARTWISE_MPI", "yes") != "no"
