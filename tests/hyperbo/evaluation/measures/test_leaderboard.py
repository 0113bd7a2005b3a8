"""The leaderboard: means, ranks and differences as plain loops have them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.clusters import estimate
from hyperbo.evaluation.measures.leaderboard import leaderboard, simplest_ahead_of

CLUSTERS = ("digits", "wine", "text")


def scores(levels, seed=0, noise=0.05):
    """Scores of methods about a level by budget, with two priors in each of three clusters."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            (method, f"{cluster}, {prior}", cluster, budget, level + noise * random.random())
            for method, by_budget in levels.items()
            for budget, level in by_budget.items()
            for cluster in CLUSTERS
            for prior in (0, 1)
        ],
        columns=["method", "prior", "cluster", "budget", "regret"],
    )


LEVELS = {
    "Rand": {1: 1.0, 10: 0.5},
    "Best-average": {1: 0.1, 10: 0.12},
    "H-NLL": {1: 0.3, 10: 0.1},
}


def test_means_and_differences_are_those_of_plain_loops():
    frame = scores(LEVELS)
    board = leaderboard(frame, ("Rand",))
    assert (board.budgets, board.priors, board.clusters) == ((1, 10), 6, ("digits", "text", "wine"))
    for budget in (1, 10):
        at = frame[frame["budget"] == budget].set_index(["method", "cluster", "prior"])["regret"]
        means = {
            method: [np.mean([at[method, name, f"{name}, {prior}"] for prior in (0, 1)]) for name in CLUSTERS]
            for method in LEVELS
        }
        lowest = min(LEVELS, key=lambda method: np.mean(means[method]))
        for method in LEVELS:
            standing = board.standings[budget, method]
            own = np.array(means[method])
            for found, expected in (
                (standing.regret, own),
                (standing.to_best, own - means[lowest]),
                (standing.to_baselines["Rand"], own - means["Rand"]),
            ):
                told = estimate(expected)
                np.testing.assert_allclose(
                    (found.mean, found.lower, found.upper), (told.mean, told.lower, told.upper), atol=1e-12
                )
            assert standing.is_best == (method == lowest)


def test_ranks_are_means_over_priors_and_budgets_with_ties_shared():
    levels = {"a": {1: 0.5, 5: 0.0}, "b": {1: 0.25, 5: 0.0}, "c": {1: 0.75, 5: 1.0}}
    board = leaderboard(scores(levels, noise=0.0), ())
    assert board.methods == ("b", "a", "c")
    assert dict(board.ranks) == {"a": 1.75, "b": 1.25, "c": 3.0}


def test_values_that_differ_by_rounding_share_their_rank():
    levels = {"a": {1: 0.1 + 0.2}, "b": {1: 0.3}}
    assert dict(leaderboard(scores(levels, noise=0.0), ()).ranks) == {"a": 1.5, "b": 1.5}


def test_a_method_is_near_the_best_where_the_interval_holds_0():
    frame = scores({"a": {1: 0.5}, "b": {1: 0.51}, "c": {1: 2.0}})
    board = leaderboard(frame, ())
    assert [board.standings[1, method].is_near_best for method in ("a", "b", "c")] == [True, True, False]


def test_without_an_interval_nothing_is_told_apart():
    frame = scores({"a": {1: 0.5}, "b": {1: 2.0}})
    board = leaderboard(frame[frame["cluster"] == "wine"], ())
    assert math.isnan(board.standings[1, "b"].to_best.lower)
    assert board.standings[1, "b"].is_near_best


def test_a_method_that_lacks_a_score_is_refused():
    frame = scores(LEVELS)
    with pytest.raises(InvalidInputError, match="same priors"):
        leaderboard(frame.drop(index=3), ())


def test_the_simplest_is_ahead_where_it_is():
    board = leaderboard(scores(LEVELS, noise=0.001), ())
    assert simplest_ahead_of(board, ("Rand", "Best-average")) == [(1, "Best-average", "H-NLL", True)]
    assert simplest_ahead_of(board, tuple(LEVELS)) == []
