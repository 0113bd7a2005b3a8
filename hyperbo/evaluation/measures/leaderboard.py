"""The leaderboard of a division: regret of every method at budgets, and what differences are beyond chance.

The unit is the prior: what a method learned in one fold from one seed. Its score after a budget is the mean
regret over its test tasks. Where a prior is tested on several clusters, it has a score in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.clusters import Estimate, cluster_means, estimate
from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE

# The columns of a frame of scores: one row per method, prior, cluster and budget.
SCORES = ("method", "prior", "cluster", "budget", "regret")
_UNIT = ["cluster", "prior"]


@dataclass(frozen=True)
class Standing:
    """A method after a budget.

    Attributes:
      regret: the mean over clusters, with its interval.
      to_best: its regret minus that of the method with the lowest mean.
      to_baselines: its regret minus that of each baseline.
      is_best: whether no method has a lower mean.
    """

    regret: Estimate
    to_best: Estimate
    to_baselines: Mapping[str, Estimate]
    is_best: bool

    @property
    def is_near_best(self) -> bool:
        """Whether the interval of the difference to the best method does not exclude 0."""
        return not self.to_best.lower > TIE_TOLERANCE


@dataclass(frozen=True)
class Leaderboard:
    """The standings of all methods of a division that completed every run.

    Attributes:
      methods: in the order of their mean rank, the best first.
      budgets: numbers of observations.
      priors: how many priors a method has.
      clusters: the clusters' names.
      ranks: mean rank of each method over priors, clusters and budgets, ties sharing their mean; 1 is best.
      standings: by budget and method.
    """

    methods: tuple[str, ...]
    budgets: tuple[int, ...]
    priors: int
    clusters: tuple[str, ...]
    ranks: Mapping[str, float]
    standings: Mapping[tuple[int, str], Standing]


def leaderboard(scores: pd.DataFrame, baselines: Sequence[str]) -> Leaderboard:
    """The leaderboard of scores.

    Args:
      scores: the columns `SCORES`; every method has the same priors, clusters and budgets.
      baselines: methods that all others are compared with; those without scores are left out.

    Raises:
      InvalidInputError: there is no score, or a method lacks one that another has.
    """
    table = scores.pivot_table(index=["budget", *_UNIT], columns="method", values="regret", aggfunc="mean")
    if table.empty or not np.isfinite(table.to_numpy()).all():
        raise InvalidInputError(
            "methods do not have the same priors, clusters and budgets",
            where="leaderboard",
            fix="leave out methods that lack a run",
        )
    # Values that differ by rounding are ties.
    ranks = (table / TIE_TOLERANCE).round().rank(axis=1).mean()
    ordered = tuple(ranks.sort_values(kind="stable").index)
    budgets = tuple(int(each) for each in sorted(scores["budget"].unique()))
    return Leaderboard(
        ordered,
        budgets,
        scores["prior"].nunique(),
        tuple(sorted(scores["cluster"].unique())),
        {method: float(ranks[method]) for method in ordered},
        {
            (budget, method): standing
            for budget in budgets
            for method, standing in _standings(table.loc[[budget]], baselines).items()
        },
    )


def _standings(table: pd.DataFrame, baselines: Sequence[str]) -> dict[str, Standing]:
    """The standings after one budget; rows of the table are priors in clusters, columns are methods."""
    clusters = pd.Series(table.index.get_level_values("cluster"), index=table.index)
    means = {method: cluster_means(table[method], clusters) for method in table.columns}
    lowest = min(means, key=lambda method: float(means[method].mean()))
    return {
        str(method): Standing(
            estimate(own),
            estimate(own - means[lowest]),
            {each: estimate(own - means[each]) for each in baselines if each in means},
            bool(own.mean() <= means[lowest].mean() + TIE_TOLERANCE),
        )
        for method, own in means.items()
    }


def simplest_ahead_of(board: Leaderboard, simple: Sequence[str]) -> list[tuple[int, str, str, bool]]:
    """The budgets at which a method without a model has a lower mean than all methods with one.

    Args:
      board: the leaderboard.
      simple: the methods without a model.

    Returns:
      For each such budget: the budget, the simple method, the best of the others, and whether the interval
      of their difference excludes 0.
    """
    others = [method for method in board.methods if method not in simple]
    found = []
    for budget in board.budgets:
        best = min(board.methods, key=lambda method: board.standings[budget, method].regret.mean)
        if best in simple and others:
            rival = min(others, key=lambda method: board.standings[budget, method].regret.mean)
            standing = board.standings[budget, rival]
            if standing.to_best.mean > TIE_TOLERANCE:
                found.append((budget, best, rival, not standing.is_near_best))
    return found


def shared_lowest(board: Leaderboard, simple: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """The budgets at which methods without a model have the lowest mean together with methods with one.

    Args:
      board: the leaderboard.
      simple: the methods without a model.

    Returns:
      For each such budget: the budget, and the methods with the lowest mean in the order of the board.
    """
    found = []
    for budget in board.budgets:
        lowest = tuple(method for method in board.methods if board.standings[budget, method].is_best)
        if 0 < sum(method in simple for method in lowest) < len(lowest):
            found.append((budget, lowest))
    return found
