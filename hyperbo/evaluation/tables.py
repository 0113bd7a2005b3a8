"""The numbers of an evaluation: regret at budgets, best errors, paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.regret import regret_curves
from hyperbo.evaluation.run_array import RunArray, run_array
from hyperbo.evaluation.spread import bootstrap_interval, standard_deviation

BUDGETS = (1, 5, 10, 25, 50, 100)


def budgets_within(iterations: int) -> tuple[int, ...]:
    """The customary budgets that runs of this length can answer for, and the length itself.

    >>> budgets_within(30)
    (1, 5, 10, 25, 30)
    """
    return tuple(sorted({budget for budget in BUDGETS if budget <= iterations} | {iterations}))


def regret_at_budgets(regrets: RunArray, budgets: Sequence[int]) -> pd.DataFrame:
    """Mean regret over tasks at some iterations: median and 20/80 percentile over seeds.

    Returns:
      One row per method and budget: `method`, `iteration`, `median`, `lower`, `upper`.

    Raises:
      InvalidInputError: a run is missing.
    """
    curves = regret_curves(regrets)
    return pd.DataFrame(
        [
            (
                method,
                budget,
                *(float(level[row, budget - 1]) for level in (curves.median, curves.lower, curves.upper)),
            )
            for row, method in enumerate(regrets.methods)
            for budget in budgets
        ],
        columns=["method", "iteration", "median", "lower", "upper"],
    )


def best_objectives(records: pd.DataFrame, metadata: EvaluationMetadata) -> RunArray:
    """Raw objective of the best observation so far, the one with the largest y, of every run.

    Raises:
      InvalidInputError: the records are invalid, or not of this evaluation.
    """
    y = run_array(records, "y", metadata)
    objective = run_array(records, "objective", metadata)
    best = _best_so_far(y.values, objective.values)
    return RunArray(y.methods, y.tasks, y.seeds, best)


def _best_so_far(
    y: Float64[np.ndarray, "*runs iterations"], objective: Float64[np.ndarray, "*runs iterations"]
) -> Float64[np.ndarray, "*runs iterations"]:
    steps = np.arange(y.shape[-1])
    improved = np.ones(y.shape, bool)
    improved[..., 1:] = y[..., 1:] > np.maximum.accumulate(y, axis=-1)[..., :-1]
    at = np.maximum.accumulate(np.where(improved, steps, 0), axis=-1)
    # A run that ended early has no best at the iterations that it lacks.
    return np.where(np.isnan(y), np.nan, np.take_along_axis(objective, at, axis=-1))


def best_error_table(best: RunArray) -> pd.DataFrame:
    """Best error after the last iteration, by task and method: mean and standard deviation over seeds.

    Args:
      best: from `best_objectives`.

    Returns:
      One row per task and method: `task`, `method`, `mean`, `std`, and `lowest`, whether no method's mean is
      lower there. An arm that lacks a seed has NaN and is never lowest.
    """
    final = np.where(best.complete[..., None], best.values[..., -1], np.nan)
    mean, std = final.mean(axis=2), standard_deviation(final, axis=2)
    # fmin passes over NaN; a comparison with NaN is false.
    lowest = mean == np.fmin.reduce(mean, axis=0)
    return pd.DataFrame(
        [
            (task, method, float(mean[row, column]), float(std[row, column]), bool(lowest[row, column]))
            for column, task in enumerate(best.tasks)
            for row, method in enumerate(best.methods)
        ],
        columns=["task", "method", "mean", "std", "lowest"],
    )


@dataclass(frozen=True)
class PairedComparison:
    """Two methods on the same tasks with the same seeds.

    Attributes:
      first: the method compared.
      second: the method it is compared with.
      iteration: the budget.
      wins: (task, seed) pairs where the first has strictly lower regret.
      ties: pairs of exactly equal regret.
      losses: pairs where the first has strictly higher regret.
      difference: mean of first minus second over tasks and seeds; negative favours the first.
      lower: lower end of the 95 % bootstrap interval of the difference, resampling seeds.
      upper: its upper end; both NaN with a single seed.
    """

    first: str
    second: str
    iteration: int
    wins: int
    ties: int
    losses: int
    difference: float
    lower: float
    upper: float


def paired_comparison(
    regrets: RunArray, first: str, second: str, iteration: int, seed: int = 0
) -> PairedComparison:
    """Compare two methods pair by pair after an iteration.

    Seeds are resampled, not runs: runs with one seed share a pre-trained prior and are not independent.

    Args:
      regrets: complete regrets.
      first: the method compared.
      second: the method it is compared with.
      iteration: the budget, counted from 1.
      seed: of the bootstrap.

    Raises:
      InvalidInputError: a run is missing, or a name or the iteration is unknown.
    """
    regrets.require_complete()
    at = regrets.at(iteration)
    a, b = at[regrets.method_index(first)], at[regrets.method_index(second)]
    per_seed = (a - b).mean(axis=0)
    return PairedComparison(
        first,
        second,
        iteration,
        int((a < b).sum()),
        int((a == b).sum()),
        int((a > b).sum()),
        float(per_seed.mean()),
        *bootstrap_interval(per_seed, seed),
    )
