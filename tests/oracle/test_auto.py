"""`auto` against HALS run to convergence, on real matrices."""

import statistics

import pytest

SEEDS = range(5)


@pytest.mark.parametrize(
    "name, rank",
    [
        ("pcawg.npy.gz", 8),
        ("samson.npy.gz", 3),
        ("golub.npy.gz", 10),
        ("mimic.npz", 10),
        ("movielens.npz", 10),
        ("face.npy.gz", 10),
    ],
)
def test_the_median_error_is_that_of_hals_or_lower(factorize, data, name, rank):
    def median(*options):
        errors = [factorize(data(name), "--rank", rank, "--seed", seed, *options)[2]["relative_error"] for seed in SEEDS]
        return statistics.median(errors)

    hals = median("--tolerance", "1e-7", "--iterations", 5000)
    assert median("--algorithm", "auto") <= 1.001 * hals
