"""Partwise's NMF is a scikit-learn estimator, and behaves like scikit-learn's NMF."""

import pathlib
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import NMF as TheirNMF
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from partwise import NMF, non_negative_factorization
from partwise._nmf import ALGORITHMS

HERE = pathlib.Path(__file__).parent


#: From a random start or singular vectors, a row with weight 2 and two rows lead to other local optima, as they do for
#: scikit-learn's KMeans; from the same start they do not (`test_losses.py`).
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the start is another one" for kind in ("dense", "sparse")
}
#: 'dsanls' does not support weights, and rejects them.
NO_WEIGHTS = {
    f"check_sample_weights_{name}": "dsanls refuses weights" for name in ("list", "not_overwritten")
} | WEIGHTS


@parametrize_with_checks(
    [NMF(solver=solver) for solver in ALGORITHMS if solver != "cd"],
    expected_failed_checks=lambda estimator: NO_WEIGHTS if estimator.solver == "dsanls" else WEIGHTS,
)
def test_all_checks_of_an_estimator(estimator, check):
    check(estimator)


def test_scikit_learns_own_tests_with_our_class():
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "in_place", "-p", "no:cacheprovider",
            "--pyargs", "sklearn.decomposition.tests.test_nmf",
        ],
        cwd=HERE, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout
    passed, exempt = re.search(r"(\d+) passed, (\d+) deselected", done.stdout).groups()
    assert int(passed) > int(exempt)


def test_exempt_cases_are_about_what_is_not_there():
    """Each exempt case has a reason, of one of the three allowed kinds."""
    kinds = {"MiniBatchNMF", "beta_loss", "private"}
    kind = None
    for line in (HERE / "exempt.txt").read_text().splitlines():
        if line.startswith("# "):
            kind = line[2:].split(":")[0]
        elif line:
            assert kind in kinds, line


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.random((60, 5)) ** 2 @ rng.random((5, 20)) ** 2 + 0.05 * rng.random((60, 20))


def test_fit_transform_is_transform(X):
    for alpha_W, l1_ratio in [(0.0, 0.0), (0.01, 0.5), (0.01, 1.0)]:
        model = NMF(4, random_state=0, alpha_W=alpha_W, l1_ratio=l1_ratio)
        np.testing.assert_allclose(model.fit_transform(X), model.transform(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_no_worse_than_scikit_learn(X, init):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = NMF(5, init=init, random_state=0).fit(X)
        theirs = TheirNMF(5, init=init, random_state=0).fit(X)
    assert ours.reconstruction_err_ < 1.02 * theirs.reconstruction_err_
    np.testing.assert_allclose(
        ours.reconstruction_err_, np.linalg.norm(X - ours.inverse_transform(ours.transform(X))), rtol=1e-6
    )


def test_coordinate_descent_is_scikit_learns(X):
    rng = np.random.default_rng(1)
    W, H = rng.random((60, 4)), rng.random((4, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parameters = {"init": "custom", "solver": "cd", "tol": 0, "max_iter": 20, "alpha_W": 0.001, "l1_ratio": 0.3}
        ours = NMF(4, **parameters).fit(X, W=W, H=H)
        theirs = TheirNMF(4, **parameters).fit(X, W=W.copy(), H=H.copy())
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-10)


def test_a_returned_W_is_no_worse_than_the_run():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for X in (rng.random((500, 10)) @ rng.random((10, 100)), rng.poisson(rng.random((200, 4)) @ rng.random((4, 50)))):
            for X, rounding in ((X.astype(np.float64), 1e-11), (X.astype(np.float32), 1e-6)):
                model = NMF(8, random_state=0, max_iter=1000, tol=1e-6)
                W = model.fit_transform(X)
                error = np.linalg.norm(X - W.astype(float) @ model.components_) / np.linalg.norm(X)
                np.testing.assert_allclose(model.relative_error_, error, rtol=1e-3, atol=1e-6)
                assert error <= (1 + rounding) * model.trace_["relative_error"][-1] + rounding


def test_a_returned_W_meets_its_penalties_no_worse_than_the_run(X):
    """Some iterations of the run itself, then the exact solution for W: the objective does not rise."""
    def objective(W, H):
        penalty = lambda factor: 0.5 * np.abs(factor).sum() + 0.25 * (factor**2).sum()  # noqa: E731
        return 0.5 * np.linalg.norm(X - W @ H) ** 2 + 0.01 * (20 * penalty(W) + 60 * penalty(H))

    model = NMF(4, random_state=0, alpha_W=0.01, l1_ratio=0.5, max_iter=30, tol=0).fit(X)
    W = model.transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TheirNMF(4, init="custom", alpha_W=0.01, l1_ratio=0.5, max_iter=1, tol=0)
        further = theirs.fit_transform(X, W=W.copy(), H=model.components_.copy())
    assert objective(W, model.components_) <= 1.01 * objective(further, theirs.components_)


@pytest.mark.parametrize("solver", ["auto", "hals", "dsanls", "mu", "bpp"])
def test_the_scale_of_components(X, solver):
    fit = lambda **more: NMF(4, solver=solver, random_state=0, tol=0, max_iter=20, **more)  # noqa: E731
    sizes = {"u": lambda W, H: np.linalg.norm(W, axis=0), "v": lambda W, H: np.linalg.norm(H, axis=1)}
    sizes |= {"sum-u": lambda W, H: W.sum(axis=0), "sum-v": lambda W, H: H.sum(axis=1)}
    sizes["balanced"] = lambda W, H: np.linalg.norm(W, axis=0) / np.linalg.norm(H, axis=1)
    balanced = fit()
    expected = balanced.inverse_transform(balanced.fit_transform(X))
    np.testing.assert_allclose(sizes["balanced"](balanced.transform(X), balanced.components_), 1, rtol=1e-6)
    for normalize, size in sizes.items():
        model = fit(normalize=normalize)
        W = model.fit_transform(X)
        np.testing.assert_allclose(size(W, model.components_), 1, rtol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(W), expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.transform(X), W, rtol=1e-6, atol=1e-8)
    assert fit(normalize="none").fit(X).relative_error_ == pytest.approx(balanced.relative_error_)
    with pytest.raises(ValueError, match="normalize: penalties"):
        fit(normalize="u", alpha_W=0.1).fit(X)
    with pytest.raises(ValueError, match="normalize is 'w'; give one of 'balanced'"):
        fit(normalize="w").fit(X)


def test_a_given_H_keeps_its_scale(X):
    H = np.random.default_rng(0).random((4, 20)) * [[1e-6], [1], [1e3], [1e6]]
    W, same, _ = non_negative_factorization(X, H=H, n_components=4, update_H=False)
    assert same is H or np.array_equal(same, H)
    from scipy.optimize import nnls

    expected = np.array([nnls(H.T, row)[0] for row in X]) @ H
    np.testing.assert_allclose(W @ H, expected, rtol=1e-6, atol=1e-8)


def test_transform_is_an_exact_least_squares_fit(X):
    from scipy.optimize import nnls

    model = NMF(4, random_state=0).fit(X)
    expected = [nnls(model.components_.T, row)[0] for row in X]
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-9)


def test_penalties_of_transform_meet_the_optimality_conditions(X):
    model = NMF(4, random_state=0, alpha_W=0.003, alpha_H=0.0, l1_ratio=0.4).fit(X)
    W, H, n = model.transform(X), model.components_, X.shape[1]
    gradient = W @ (H @ H.T) - X @ H.T + 0.003 * n * (0.4 + 0.6 * W)
    assert gradient.min() > -1e-9 and np.abs(gradient * W).max() < 1e-9
    assert (W == 0).any() and (W > 0).any()


def test_in_pipelines_and_searches(X):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    pipeline = make_pipeline(NMF(random_state=0, max_iter=20, tol=0), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"nmf__n_components": [2, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6


def test_pickles_and_clones(X):
    model = NMF(3, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.transform(X), again.transform(X))
    np.testing.assert_array_equal(model.trace_, again.trace_)
    assert clone(model).get_params() == model.get_params()


def test_names_and_frames(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"gene{i}" for i in range(X.shape[1])])
    model = NMF(3, random_state=0).set_output(transform="pandas")
    W = model.fit_transform(frame)
    assert list(W.columns) == list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]
    assert list(model.feature_names_in_) == list(frame.columns) and model.n_features_in_ == 20
    # As scikit-learn has it: other names, or the same in another order, are refused.
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.transform(frame.rename(columns={"gene3": "other"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.transform(X)


def test_seeds(X):
    fit = lambda **more: NMF(3, init="random", tol=0, max_iter=5, **more).fit(X).components_  # noqa: E731
    np.testing.assert_array_equal(fit(random_state=1), fit(random_state=1, n_jobs=1))
    assert not np.array_equal(fit(random_state=1), fit(random_state=2))
    assert not np.array_equal(fit(), fit())
    np.testing.assert_array_equal(
        fit(random_state=np.random.RandomState(3)), fit(random_state=np.random.RandomState(3))
    )


def test_the_best_of_several_starts(X):
    errors = [NMF(4, init="random", random_state=seed).fit(X).relative_error_ for seed in range(3)]
    best = NMF(4, init="random", random_state=0, n_init=3).fit(X)
    np.testing.assert_allclose(best.relative_error_, min(errors), rtol=1e-3)


def test_the_function(X):
    W, H, n_iter = non_negative_factorization(X, n_components=3, random_state=0)
    model = NMF(3, random_state=0)
    np.testing.assert_array_equal(W, model.fit_transform(X))
    np.testing.assert_array_equal(H, model.components_)
    assert n_iter == model.n_iter_
    with pytest.raises(NotFittedError):
        NMF().transform(X)


def test_sketches(X):
    for sketch in ["subsample", "gaussian", "count", "srht"]:
        for solver in ["pcd", "pgd"]:
            model = NMF(
                3, solver="dsanls", sketch=sketch, sketch_cols=10, sketch_rows=0.5, sketch_solver=solver,
                max_iter=60, tol=0, random_state=0,
            ).fit(sp.csr_array(X))
            assert model.relative_error_ < 0.4, (sketch, solver)
