"""The numbers of an evaluation: regret at budgets, best objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.records import INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN
from hyperbo.evaluation.regret import regret_curves
from hyperbo.evaluation.run_array import RunArray, run_array
from hyperbo.evaluation.spread import ROUNDING, standard_deviation

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
    """Raw objective of the best trial so far, the one with the largest y, of every run; given ones count.

    Raises:
      InvalidInputError: the records are invalid, or not of this evaluation.
    """
    y = run_array(records, "y", metadata)
    values, objective = y.values, run_array(records, "objective", metadata).values
    if INITIAL_OBJECTIVE_COLUMN not in records.columns:
        return RunArray(y.methods, y.tasks, y.seeds, _best_so_far(values, objective))
    given, of_given = (
        run_array(records, column, metadata).values[..., :1]
        for column in (INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN)
    )
    # What was given comes before the first iteration; a run that was given nothing begins below any y.
    values = np.concatenate([np.where(np.isnan(given), -np.inf, given), values], axis=-1)
    best = _best_so_far(values, np.concatenate([of_given, objective], axis=-1))
    return RunArray(y.methods, y.tasks, y.seeds, best[..., 1:])


def _best_so_far(
    y: Float64[np.ndarray, "*runs iterations"], objective: Float64[np.ndarray, "*runs iterations"]
) -> Float64[np.ndarray, "*runs iterations"]:
    steps = np.arange(y.shape[-1])
    improved = np.ones(y.shape, bool)
    improved[..., 1:] = y[..., 1:] > np.maximum.accumulate(y, axis=-1)[..., :-1]
    at = np.maximum.accumulate(np.where(improved, steps, 0), axis=-1)
    # A run that ended early has no best at the iterations that it lacks.
    return np.where(np.isnan(y), np.nan, np.take_along_axis(objective, at, axis=-1))


def best_objective_table(best: RunArray, *, minimise: bool = True) -> pd.DataFrame:
    """Best raw objective after the last iteration: mean and standard deviation over seeds.

    For an error rate, the table of best validation error rates, section "Correlations between the Test NLL,
    Pre-training Loss and BO Performance".

    Args:
      best: from `best_objectives`.
      minimise: whether less of the raw objective is better.

    Returns:
      One row per task and method: `task`, `method`, `mean`, `std`, and `best`, whether no method's mean is
      better there. An arm that lacks a seed has NaN and is never best.
    """
    final = np.where(best.complete[..., None], best.values[..., -1], np.nan)
    return mean_std_table(final, best.methods, best.tasks, minimise=minimise)


def rows_by(table: pd.DataFrame, key: str) -> list[tuple[str, list[Any]]]:
    """The rows of a table by the label in a column, in their order."""
    return [(str(label), list(rows.itertuples())) for label, rows in table.groupby(key, sort=False)]


def mean_std_table(
    values: Float64[np.ndarray, "methods tasks seeds"],
    methods: Sequence[str],
    tasks: Sequence[str],
    *,
    minimise: bool = True,
) -> pd.DataFrame:
    """Mean and standard deviation over seeds by task and method, as `best_objective_table` returns them."""
    mean, std = values.mean(axis=2), standard_deviation(values, axis=2)
    # fmin and fmax pass over NaN; a comparison with NaN is false.
    best = (np.fmin if minimise else np.fmax).reduce(mean, axis=0)
    # The same values with other seeds are no worse, whatever rounding makes of their means.
    is_best = np.abs(mean - best) <= ROUNDING * np.abs(best)
    return pd.DataFrame(
        [
            (task, method, float(mean[row, column]), float(std[row, column]), bool(is_best[row, column]))
            for column, task in enumerate(tasks)
            for row, method in enumerate(methods)
        ],
        columns=["task", "method", "mean", "std", "best"],
    )
