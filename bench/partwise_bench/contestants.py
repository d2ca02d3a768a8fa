"""The compared programs, by name. A new one is a line in PARTWISE, or a function in a peers_*.py and a line in PEERS."""

import importlib

# Options in addition to those of every run.
PARTWISE = {
    "partwise": [],
    "partwise hals": ["--algorithm", "hals"],
    "partwise dsanls": ["--algorithm", "dsanls", "--sketch", "subsample"],
}
# Module, function, arguments of the function that makes it, and whether it takes a sparse matrix.
PEERS = {
    "scikit-learn cd": ("peers_sklearn", "coordinate_descent", None, True),
    "scikit-learn mu": ("peers_sklearn", "multiplicative", None, True),
    "scikit-learn MiniBatchNMF": ("peers_sklearn", "minibatch", None, True),
    "nmf-torch hals": ("peers_torch", "nmf_torch", "hals", False),
    "nmf-torch halsvar": ("peers_torch", "nmf_torch", "halsvar", False),
    "torchnmf": ("peers_torch", "torchnmf", None, True),
}
REFERENCE = "scikit-learn cd"
PACKAGES = {"scikit-learn": "scikit-learn", "nmf-torch": "nmf-torch", "torchnmf": "torchnmf"}
# A peer that takes no sparse matrix is given it dense, up to this size.
DENSE_LIMIT = 4 << 30


def everybody():
    """The reference first: the others need its errors."""
    return [REFERENCE, *PARTWISE, *(peer for peer in PEERS if peer != REFERENCE)]


def package(contestant):
    """The package on PyPI that a peer comes from; None for Partwise."""
    return PACKAGES.get(contestant.split()[0])


def peer(name):
    module, function, argument, _ = PEERS[name]
    found = getattr(importlib.import_module(f".{module}", __package__), function)
    return found if argument is None else found(argument)


def cannot(name, matrix):
    """Why a peer cannot take part, or None."""
    size = 4 * matrix.shape[0] * matrix.shape[1]
    if name in PARTWISE or PEERS[name][3] or not hasattr(matrix, "indptr") or size <= DENSE_LIMIT:
        return None
    return f"takes no sparse matrix; dense it would need {size / 2**30:,.0f} GiB"
