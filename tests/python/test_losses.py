"""Losses, missing values and weights."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import NMF as Reference

from partwise import NMF


def counts(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.7, 2, (40, 3)) @ rng.gamma(0.7, 2, (3, 25))).astype(float)


@pytest.mark.parametrize("loss", ["kullback-leibler", 1, "itakura-saito", 0])
def test_the_loss_matches_scikit_learn(loss):
    X = counts() + (1 if loss in ("itakura-saito", 0) else 0)
    ours = NMF(3, beta_loss=loss, random_state=0, tol=1e-6, max_iter=500).fit(X)
    theirs = Reference(3, beta_loss=loss, solver="mu", random_state=0, tol=1e-6, max_iter=1000).fit(X)
    assert ours.reconstruction_err_ <= 1.02 * theirs.reconstruction_err_
    assert ours.reconstruction_err_ == pytest.approx(np.sqrt(2 * ours.loss_))
    assert ours.trace_["loss"][-1] >= 0.999 * ours.loss_


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_transform_reproduces_the_fit(loss):
    X = counts(1)
    model = NMF(3, beta_loss=loss, random_state=0, tol=1e-7, max_iter=1000)
    W = model.fit_transform(X)
    np.testing.assert_allclose(model.transform(X) @ model.components_, W @ model.components_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_missing_values_have_no_influence(loss):
    X = counts(2)
    hidden = np.random.default_rng(3).uniform(size=X.shape) < 0.2
    gaps = np.where(hidden, np.nan, X)
    parameters = {"beta_loss": loss, "random_state": 0, "init": "random", "max_iter": 30, "tol": 0}
    by_nan = NMF(3, missing_values=np.nan, **parameters).fit_transform(gaps)
    by_weight = NMF(3, **parameters).fit_transform(np.where(hidden, 1e3, X), weights=(~hidden).astype(float))
    np.testing.assert_allclose(by_nan, by_weight, rtol=1e-6, atol=1e-9)
    model = NMF(3, missing_values=np.nan, **parameters).fit(gaps)
    assert np.isfinite(model.transform(gaps)).all()


def test_missing_zeros_equal_unstored_entries():
    X = counts(4)
    parameters = {"random_state": 0, "init": "random", "max_iter": 30, "tol": 0}
    zero = NMF(3, missing_values=0, **parameters).fit_transform(X)
    unstored = NMF(3, missing_values="unstored", **parameters).fit_transform(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(zero, unstored, rtol=1e-9)


def test_a_sample_weight_of_two_repeats_the_sample():
    X = counts(5)
    weight = np.ones(40)
    weight[7] = 2
    W, H = np.random.default_rng(0).uniform(0.1, 1, (40, 3)), np.random.default_rng(1).uniform(0.1, 1, (3, 25))
    twice, start = np.vstack([X, X[7]]), np.vstack([W, W[7]])
    for loss in ("frobenius", "kullback-leibler"):
        parameters = {"init": "custom", "solver": "hals", "beta_loss": loss, "max_iter": 8, "tol": 0}
        weighted = NMF(3, **parameters).fit(X, W=W, H=H, sample_weight=weight)
        doubled = NMF(3, **parameters).fit(twice, W=start, H=H, weights=np.full(twice.shape, 1 + 1e-13))
        np.testing.assert_allclose(
            weighted.inverse_transform(weighted.transform(X)), doubled.inverse_transform(doubled.transform(X)), rtol=1e-6
        )


@pytest.mark.parametrize(
    "parameters, fit, message",
    [
        ({}, {"sample_weight": [1.0]}, "give 40 numbers"),
        ({}, {"sample_weight": np.full(40, -1.0)}, "Negative values"),
        ({}, {"weights": np.ones((2, 2))}, "weights have the shape"),
        ({}, {"weights": np.ones((40, 25)), "sample_weight": np.ones(40)}, "cannot be combined"),
        ({"missing_values": "nan"}, {}, "give nan, 0 or 'unstored'"),
        ({"missing_values": "unstored"}, {}, "a dense matrix stores every entry"),
        ({"beta_loss": 0}, {"weights": np.full((40, 25), 2.0)}, "does not support weights|undefined at 0"),
        ({"solver": "dsanls"}, {"weights": np.full((40, 25), 2.0)}, "needs every entry"),
    ],
)
def test_invalid_parameters_are_refused(parameters, fit, message):
    with pytest.raises(ValueError, match=message):
        NMF(3, random_state=0, **parameters).fit(counts(), **fit)
