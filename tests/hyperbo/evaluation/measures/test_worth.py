"""What a prior is worth: regrets against plain enumeration, verdicts by intervals, the table."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperbo.evaluation.measures.worth import (
    AVERAGE,
    METHODS,
    PRIOR,
    RANDOM,
    TPE,
    Worth,
    measure_worth,
    random_regret,
    regret_after,
    trial_regrets,
)

FOLDS = ("a", "a", "b", "c", "d")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.integers(1, 9))
def test_random_search_is_the_mean_over_all_its_draws(regrets, budget):
    values = np.array(regrets)
    draws = itertools.combinations(values, min(budget, len(values)))
    expected = np.mean([min(draw) for draw in draws])
    np.testing.assert_allclose(random_regret(values, (budget,)), [expected], atol=1e-12)


def test_regret_is_a_share_of_the_way_from_the_best_to_the_median():
    y = np.array([5.0, 4.0, 3.0, -1e6, 0.0])
    feasible = np.array([True, True, True, True, False])
    # The median of 5, 4, 3 and -1e6 is 3.5.
    np.testing.assert_allclose(trial_regrets(y, feasible), [0.0, 2 / 3, 1.0, 1.0, 1.0])
    shifted = trial_regrets(0.01 * y + 7.0, feasible)
    np.testing.assert_allclose(shifted, trial_regrets(y, feasible))
    assert trial_regrets(np.array([1.0, 1.0, 0.0]), np.ones(3, bool)).tolist() == [0.0, 0.0, 1.0]


def test_regret_after_a_budget_is_the_lowest_so_far_and_a_short_run_stays_where_it_ended():
    regrets = np.array([0.9, 0.4, 0.7, 0.1])
    rows = np.array([[2, 0, 1], [3, 1, 0]])
    assert regret_after(regrets, rows, (1, 3, 20)).tolist() == [[0.7, 0.4, 0.4], [0.1, 0.1, 0.1]]


def regrets_with(prior, random, tpe, average=0.5):
    """Regrets on five tasks of four folds; each is a number for all, or one for each task."""
    given = {PRIOR: prior, RANDOM: random, TPE: tpe, AVERAGE: average}
    return {
        name: np.broadcast_to(np.broadcast_to(value, 5)[:, None], (5, 4)) for name, value in given.items()
    }


def worth(**regrets) -> Worth:
    return measure_worth(regrets_with(**regrets), FOLDS, left_out="task dataset", of_folds=9, seed=3)


SPREAD = np.array([0.00, 0.02, 0.05, 0.01, 0.03])


@pytest.mark.parametrize(
    ("prior", "random", "tpe", "verdict"),
    [
        (0.1 + SPREAD, 0.6, 0.5, "helps"),
        (0.1 + SPREAD, 0.6, 0.1 + SPREAD[::-1], "cannot be told"),
        (0.6 + SPREAD, 0.7, 0.5, "does not help"),
        (0.4, 0.4, 0.4, "does not help"),
    ],
)
def test_the_verdict_is_that_of_both_intervals(prior, random, tpe, verdict):
    assert worth(prior=prior, random=random, tpe=tpe).verdict == verdict


def test_an_interval_counts_each_fold_once():
    found = worth(prior=0.1 + SPREAD, random=0.6, tpe=0.5)
    means = np.array([0.11, 0.15, 0.11, 0.13])
    half = stats.t.ppf(0.975, 3) * means.std(ddof=1) / 2
    estimate = found.regret[PRIOR][2]
    np.testing.assert_allclose(
        [estimate.mean, estimate.lower, estimate.upper],
        [means.mean(), means.mean() - half, means.mean() + half],
    )
    np.testing.assert_allclose(found.ahead_by[RANDOM].mean, 0.6 - means.mean())


def test_the_evidence_is_plain_json_and_gives_the_same_lines():
    found = worth(prior=0.1 + SPREAD, random=0.6, tpe=0.5, average=0.05)
    again = Worth.from_evidence(json.loads(json.dumps(found.evidence(), allow_nan=False)))
    assert again.lines() == found.lines()
    text = "\n".join(found.lines())
    assert all(name in text for name in METHODS)
    assert "4 task datasets of 9, drawn by seed 3" in text
    assert "the prior helps" in text
    assert "the best-average order is ahead" in text
    assert "is ahead of it on" not in "\n".join(worth(prior=0.1, random=0.6, tpe=0.5).lines())


def test_one_fold_has_no_interval_and_no_verdict():
    found = measure_worth(regrets_with(0.1, 0.5, 0.5), ["a"] * 5, left_out="task", of_folds=1, seed=0)
    assert math.isnan(found.regret[PRIOR][0].lower)
    again = Worth.from_evidence(json.loads(json.dumps(found.evidence(), allow_nan=False)))
    assert again.verdict == "cannot be told"
    assert any("no interval" in line for line in again.lines())
