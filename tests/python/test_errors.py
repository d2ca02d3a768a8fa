"""Every error is a Python exception of the right kind, with one sentence that gives advice."""

import numpy as np
import partwise
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from partwise import NMF, non_negative_factorization

X = np.random.default_rng(0).random((20, 10))


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"n_components": 0}, "n_components is 0; give an integer of 1 or more"),
        ({"n_components": 2.5}, "n_components is 2.5; give an integer of 1 or more"),
        ({"n_components": "some"}, "n_components is 'some'; give an integer of 1 or more"),
        ({"max_iter": 0}, "max_iter is 0; give an integer of 1 or more"),
        ({"max_iter": True}, "max_iter is True; give an integer of 1 or more"),
        ({"tol": -1}, "tol is -1; give a number of 0 or more"),
        ({"tol": float("nan")}, "tol is nan; give a number of 0 or more"),
        ({"alpha_W": -1.0}, "alpha_W is -1.0; give a finite number of 0 or more"),
        ({"alpha_H": "other"}, "alpha_H is 'other'; give a finite number of 0 or more"),
        ({"l1_ratio": 1.5}, "l1_ratio is 1.5; give a finite number from 0 to 1"),
        ({"solver": "qr"}, "solver is 'qr'; give one of"),
        ({"init": "zeros"}, "init is 'zeros'; give one of 'random', 'nndsvd'"),
        ({"init": ["random"]}, "init is ['random']; give one of"),
        ({"sketch": None}, "sketch is None; give one of 'subsample'"),
        ({"sketch_solver": "cd"}, "sketch_solver is 'cd'; give one of 'pcd', 'pgd'"),
        ({"sketch": "gaussian"}, "sketch: auto does not use it; leave it out, or choose dsanls"),
        ({"solver": "cd", "sketch_solver": "pgd"}, "sketch_solver: hals does not use it"),
        ({"solver": "bpp", "sketch_rows": 5}, "sketch_rows: bpp does not use it"),
        ({"solver": "dsanls", "sketch_cols": 11}, "sketch_cols: 11 is out of range, the matrix has 10 columns"),
        ({"solver": "dsanls", "sketch_rows": 1.5}, "sketch_rows is 1.5; give a finite number from 0 to 1"),
        ({"beta_loss": "huber"}, "beta_loss is 'huber'; give one of 'frobenius', 2, 'kullback-leibler'"),
        ({"beta_loss": ["frobenius"]}, "beta_loss is ['frobenius']; give one of"),
        ({"beta_loss": "kullback-leibler", "solver": "bpp"}, "does not handle beta_loss = 'kullback-leibler'"),
        ({"beta_loss": 0, "solver": "hals"}, "does not handle beta_loss = 0; use one of 'auto', 'mu'"),
        ({"n_jobs": 0}, "n_jobs is 0; give a number of threads"),
        ({"n_jobs": 10**6}, "give a number of threads up to 4096"),
        ({"n_init": 0}, "n_init is 0; give an integer of 1 or more"),
        ({"n_init": 5, "init": "nndsvda"}, "n_init: all runs from the same singular vectors are identical"),
        ({"alpha_W": float("inf")}, "alpha_W is inf; give a finite number of 0 or more"),
        ({"alpha_H": np.float32("inf")}, "give a finite number of 0 or more"),
        ({"target_error": -0.1}, "target_error is -0.1; give a number of 0 or more"),
        ({"init": "custom"}, "NMF (input H) is missing; give it, or another init"),
    ],
)
def test_parameters(parameters, sentence):
    with pytest.raises(ValueError) as raised:
        NMF(**{"n_components": 3, **parameters}).fit(X)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "matrix, sentence",
    [
        (-X, "Negative values in data passed to NMF (input X)"),
        (sp.csr_array(-X), "Negative values in data passed to NMF (input X)"),
        (np.where(X > 0.5, np.nan, X), "Input X contains NaN"),
        (np.where(X > 0.5, np.inf, X), "Input X contains infinity"),
        (np.zeros((5, 5)), "X: every entry is 0, so there is nothing to factorize"),
        (sp.csr_array((5, 5)), "X: every entry is 0, so there is nothing to factorize"),
        (np.full((5, 5), 1e-30, np.float32), "use float64, or rescale the matrix"),
        (np.full((5, 5), 1e200), "the largest is 1.00e200, but the arithmetic needs one from"),
        (np.ones(5), "Expected 2D array"),
        (np.ones((0, 5)), "Found array with 0 sample"),
        (np.array([["a", "b"]]), "could not convert string"),
        (np.ones((3, 3), complex), "Complex data not supported"),
    ],
)
def test_matrices(matrix, sentence):
    with pytest.raises(ValueError) as raised:
        NMF(2, init="random").fit(matrix)
    assert sentence in str(raised.value)


def test_damaged_sparse_matrices():
    for part, value in [("indices", 99), ("indices", -1), ("indptr", 10**6)]:
        damaged = sp.csr_array(X)
        getattr(damaged, part)[3] = value
        damaged.has_canonical_format = True
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            NMF(2, init="random").fit(damaged)


def test_other_shapes_than_fitted():
    with pytest.raises(NotFittedError):
        NMF().transform(X)
    with pytest.raises(NotFittedError):
        NMF().inverse_transform(X)
    model = NMF(3).fit(X)
    with pytest.raises(ValueError, match="X has 9 features, but NMF is expecting 10"):
        model.transform(X[:, 1:])
    with pytest.raises(ValueError, match="X has 2 columns, but there are 3 components"):
        model.inverse_transform(np.ones((5, 2)))
    with pytest.raises(ValueError, match="Negative values in data"):
        model.transform(-X)
    with pytest.raises(ValueError, match="wrong second dimension passed to NMF"):
        non_negative_factorization(X, H=np.ones((2, 9)), update_H=False)
    with pytest.raises(ValueError, match="W has 3 columns, but H has 2 rows"):
        NMF(init="custom").fit(X, W=np.ones((20, 3)), H=np.ones((2, 10)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normalize", "u"), ("normalize", "balanced"), ("callback", print), ("progress", True), ("time_limit", 5.0),
        ("target_error", 0.1), ("n_init", 3), ("sketch", "count"), ("sketch_cols", 4), ("sketch_rows", 0.5),
        ("sketch_solver", "pgd"),
    ],
)  # fmt: skip
def test_what_a_given_H_does_not_use_is_refused_by_name(name, value):
    H = np.random.default_rng(1).random((3, 10))
    with pytest.raises(ValueError, match=f"^{name}[ :].*update_H=False"):
        non_negative_factorization(X, H=H, n_components=3, update_H=False, **{name: value})


def test_what_scikit_learn_ignores_with_a_given_H_stays_ignored():
    H = np.random.default_rng(1).random((3, 10))
    plain = non_negative_factorization(X, H=H, n_components=3, update_H=False)
    ignored = {"init": "random", "solver": "mu", "max_iter": 3, "tol": 1, "alpha_H": 2, "random_state": 1, "verbose": 1}
    for parameters in (ignored, {"shuffle": True, "beta_loss": 2}, {"normalize": "none", "n_jobs": 1}):
        other = non_negative_factorization(X, H=H, n_components=3, update_H=False, **parameters)
        np.testing.assert_array_equal(other[0], plain[0])
        np.testing.assert_array_equal(other[1], H)


def test_more_than_the_memory_is_refused_before_it_is_taken():
    with pytest.raises(MemoryError, match="use fewer n_components"):
        NMF(10**6, init="random").fit(X)


def test_unfinished_runs_warn():
    with pytest.warns(ConvergenceWarning, match="Maximum number of iterations 2 reached"):
        NMF(3, max_iter=2).fit(X)


def test_numbers_of_numpy_are_numbers():
    numbers = {"n_components": np.int64(3), "max_iter": np.int32(5), "tol": np.float32(0), "alpha_W": np.float32(0.1)}
    numbers |= {"target_error": np.float32(0), "time_limit": np.float32(1e3), "n_init": np.uint8(2), "n_jobs": np.int16(1)}
    numbers |= {"random_state": np.int64(0), "l1_ratio": np.float16(0.5), "sketch_cols": np.float32(0.5)}
    assert NMF(solver="dsanls", **numbers).fit(X).n_iter_ == 5
    result = partwise.simulate(X, np.int64(2), parties=np.int8(3), rounds=np.int64(4), tolerance=np.float32(0))
    assert result.report["rounds"] == 4


def test_infinity_is_a_number_where_it_has_a_meaning():
    assert NMF(3, tol=np.inf).fit(X).stopped_by_ == "tolerance"
    assert NMF(3, target_error=np.inf).fit(X).stopped_by_ == "target-error"
    assert NMF(3, time_limit=np.inf, tol=0, max_iter=2).fit(X).stopped_by_ == "iterations"


def test_several_runs_have_different_starts():
    best = NMF(4, n_init=3, random_state=0, tol=0, max_iter=5).fit(X)
    starts = [NMF(4, init="random", random_state=seed, tol=0, max_iter=5).fit(X) for seed in range(3)]
    assert best.relative_error_ == min(start.relative_error_ for start in starts)
    # Sketches differ between runs.
    NMF(4, n_init=2, init="nndsvda", solver="dsanls", max_iter=2).fit(X)


def test_simulations_name_parameters_as_python_does(tmp_path):
    for settings, sentence in [
        ({"tolerance": -1.0}, "tolerance: "),
        ({"inner": 0}, "inner: "),
        ({"rho": 0.0}, "rho: "),
        ({"rounds": "ten"}, 'rounds is "ten"; '),
        ({"rounds": np.inf}, "rounds is inf; give a finite number"),
        ({"protocol": "sum"}, 'protocol is "sum"; '),
        ({"rank": 4}, "rank is not a setting"),
        ({"sketch_records": 1.5, "protocol": "syn-ssd-v"}, "sketch_records is 1.5; give a finite number from 0 to 1"),
        ({"parties": 300}, "parties is 300; give an integer from 2 to 255"),
        ({"parties": 2}, "accept it with two_parties_see_each_other=True"),
    ]:
        with pytest.raises(ValueError) as raised:
            partwise.simulate(X, 3, **{"parties": 3, **settings})
        assert sentence in str(raised.value) and "--" not in str(raised.value)


def test_paths_are_quoted_as_they_are(tmp_path):
    folder = tmp_path / "my--rank" / "--data" / "a --threads b"
    folder.mkdir(parents=True)
    (folder / "party.toml").write_text("federation = 3")
    for call in (lambda: partwise.join(folder / "party.toml", X), lambda: partwise.audit(folder)):
        with pytest.raises((ValueError, OSError)) as raised:
            call()
        assert str(folder) in str(raised.value)
