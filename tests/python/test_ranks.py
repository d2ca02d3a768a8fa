"""Choosing the number of components."""

import numpy as np
import pytest
import scipy.sparse

import partwise


def planted(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    exact = generator.exponential(size=(80, 4)) @ generator.exponential(size=(4, 50))
    return np.maximum(exact + 0.3 * generator.normal(size=exact.shape), 0)


@pytest.mark.parametrize("seed", range(3))
def test_planted_rank_is_suggested(seed: int) -> None:
    found = partwise.select_rank(planted(seed), range(2, 8), n_restarts=5, random_state=seed)
    assert found.suggested == 4, found
    assert list(found.components) == [2, 3, 4, 5, 6, 7]
    assert found.stability[2] > 0.9 and np.isfinite(found.heldout_loss).all()


def test_result_depends_neither_on_threads_nor_on_storage() -> None:
    X = planted(0)
    one, two, sparse = (
        partwise.select_rank(given, [2, 4], n_restarts=3, random_state=1, n_jobs=jobs)
        for given, jobs in [(X, 1), (X, 2), (scipy.sparse.csr_matrix(X), 2)]
    )
    assert (one.heldout_loss == two.heldout_loss).all() and (one.stability == two.stability).all()
    np.testing.assert_allclose(sparse.heldout_loss, one.heldout_loss, rtol=1e-6)


def test_counts_by_divergence() -> None:
    X = np.random.default_rng(2).poisson(5 * planted(2))
    found = partwise.select_rank(X, [2, 4, 6], beta_loss="kullback-leibler", n_restarts=3, random_state=0)
    assert found.heldout_loss[1] < found.heldout_loss[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"components": []}, "components"),
        ({"components": [0]}, "components is 0"),
        ({"n_restarts": 0}, "n_restarts is 0"),
        ({"solver": "dsanls"}, "solver is 'dsanls'"),
        ({"beta_loss": "huber"}, "beta_loss is 'huber'"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        partwise.select_rank(planted(0), **arguments)
    with pytest.raises(ValueError, match="below 0"):
        partwise.select_rank(-planted(0))
