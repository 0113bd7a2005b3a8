"""Paired comparisons against loops in plain Python, the sign-flip test against all flips written out."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.comparisons import Tally, paired_comparison, sign_flip_p_value
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.run_array import RunArray


def tally(differences):
    return Tally(
        sum(d < -1e-9 for d in differences),
        sum(abs(d) <= 1e-9 for d in differences),
        sum(d > 1e-9 for d in differences),
    )


def test_the_unit_is_the_seed(records, metadata):
    regrets = simple_regrets(records, metadata)
    result = paired_comparison(regrets, "H-EKL", "STBO", 10)
    a, b = (regrets.values[regrets.methods.index(name), :, :, 9].tolist() for name in ("H-EKL", "STBO"))
    by_seed = [statistics.fmean(a[p][q] - b[p][q] for p in range(6)) for q in range(5)]
    by_task = [statistics.fmean(a[p][q] - b[p][q] for q in range(5)) for p in range(6)]
    assert result.per_seed.tolist() == pytest.approx(by_seed)
    assert result.difference == pytest.approx(statistics.fmean(by_seed))
    assert (result.by_seed, result.by_task) == (tally(by_seed), tally(by_task))
    assert result.by_task.ties == 1  # the easy task
    assert (result.tasks, result.seeds) == (regrets.tasks, regrets.seeds)
    assert (result.missing_tasks, result.missing_seeds) == ((), ())

    # The bootstrap resamples 5 values; all 5^5 resamples give its interval up to that of 10,000 draws.
    means = [statistics.fmean(sample) for sample in itertools.product(by_seed, repeat=5)]
    exact = np.quantile(means, (0.025, 0.975))
    width = exact[1] - exact[0]
    assert (result.lower, result.upper) == pytest.approx(tuple(exact), abs=0.05 * width)
    assert result.lower < result.difference < result.upper


def test_what_is_missing_is_neither_won_nor_lost(with_missing_arm, metadata):
    # All of seed 4 of Rand, all of H-EKL: a stopped study and a method that failed.
    lost = ((with_missing_arm["method"] == "Rand") & (with_missing_arm["seed"] == 4)) | (
        with_missing_arm["method"] == "H-EKL"
    )
    regrets = simple_regrets(with_missing_arm[~lost], metadata)
    result = paired_comparison(regrets, "STBO", "Rand", 10)
    assert result.missing_tasks == ("digits-cnn-64", "wine-mlp-16")
    assert result.missing_seeds == (4,)
    assert len(result.tasks) == sum((result.by_task.wins, result.by_task.ties, result.by_task.losses)) == 4
    assert len(result.per_seed) == len(result.seeds) == 4
    complete = regrets.select(["STBO", "Rand"], result.tasks).values[:, :, :4, 9]
    np.testing.assert_allclose(result.per_seed, (complete[0] - complete[1]).mean(axis=0))

    nothing = paired_comparison(regrets, "STBO", "H-EKL", 10)
    assert (nothing.tasks, nothing.seeds) == ((), ())
    assert (nothing.missing_tasks, nothing.missing_seeds) == (regrets.tasks, regrets.seeds)
    assert nothing.by_task == nothing.by_seed == Tally(0, 0, 0)
    assert all(math.isnan(x) for x in (nothing.difference, nothing.lower, nothing.upper, nothing.p_value))
    with pytest.raises(InvalidInputError, match="no method 'MAF'"):
        paired_comparison(regrets, "STBO", "MAF", 10)
    with pytest.raises(InvalidInputError, match="no iteration 31"):
        paired_comparison(regrets, "STBO", "Rand", 31)


def test_rounding_decides_nothing():
    # 0.1 + 0.2 + 0.3 in two orders: the means differ in the last bit.
    values = np.array([[[0.1, 0.2, 0.3]], [[0.3, 0.2, 0.1]]])[..., None]
    result = paired_comparison(RunArray(("a", "b"), ("t",), (0, 1, 2), values), "a", "b", 1)
    assert result.by_task == Tally(0, 1, 0)
    assert result.by_seed == Tally(1, 1, 1)
    assert result.p_value == 1


def test_one_seed_has_no_interval_and_proves_nothing():
    values = np.array([0.1, 0.9]).reshape(2, 1, 1, 1)
    result = paired_comparison(RunArray(("a", "b"), ("t",), (0,), values), "a", "b", 1)
    assert math.isnan(result.lower)
    assert result.p_value == 1


def test_a_long_list_of_seeds_draws_its_flips():
    differences = np.array([3, -1, 4, 1, -5, 9, 2, -6, 5, 3, 5, -8, 9, 7, 9, -3, 2, 3, 8, -4, 6])

    def exact(values):
        """From the number of ways to reach every sum: the product of the polynomials z^-d + z^d."""
        ways = np.ones(1)
        for value in np.abs(values):
            ways = np.convolve(ways, [1, *[0] * (2 * value - 1), 1])
        sums = np.arange(len(ways)) - np.abs(values).sum()
        return ways[np.abs(sums) >= abs(values.sum())].sum() / 2 ** len(values)

    assert sign_flip_p_value(differences[:20] * 1.0) == exact(differences[:20])
    drawn = sign_flip_p_value(differences * 1.0)
    assert drawn == sign_flip_p_value(differences * 1.0) > 0.01
    assert drawn == pytest.approx(exact(differences), abs=4 * math.sqrt(0.25 / 10_000))


REGRETS = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: arrays(
        np.float64,
        (2, *shape, 1),
        elements=st.one_of(st.integers(0, 4).map(lambda i: i / 64), st.just(math.nan)),
    )
)


@settings(max_examples=150, deadline=None)
@given(REGRETS)
def test_laws(values):
    tasks, seeds = tuple("pqrs"[: values.shape[1]]), tuple(range(values.shape[2]))
    regrets = RunArray(("a", "b"), tasks, seeds, values)
    result, mirrored = (paired_comparison(regrets, *pair, 1) for pair in (("a", "b"), ("b", "a")))
    for own, other in ((result.by_task, mirrored.by_task), (result.by_seed, mirrored.by_seed)):
        assert (own.wins, own.ties, own.losses) == (other.losses, other.ties, other.wins)
    assert sorted(result.tasks + result.missing_tasks) == sorted(tasks)
    assert sorted(result.seeds + result.missing_seeds) == sorted(seeds)
    assert result.by_task.wins + result.by_task.ties + result.by_task.losses == len(result.tasks)
    assert result.by_seed.wins + result.by_seed.ties + result.by_seed.losses == len(result.seeds)
    assert np.isfinite(result.per_seed).all()
    if result.tasks:
        assert result.difference == pytest.approx(-mirrored.difference)
        flips = [
            abs(sum(s * d for s, d in zip(signs, result.per_seed.tolist(), strict=True)))
            for signs in itertools.product((1, -1), repeat=len(result.seeds))
        ]
        observed = abs(sum(result.per_seed.tolist()))
        expected = sum(flip >= observed - 1e-12 for flip in flips) / len(flips)
        assert result.p_value == mirrored.p_value == pytest.approx(expected)
        assert result.p_value >= min(1, 2 / 2 ** len(result.seeds))
    else:
        assert math.isnan(result.difference)
