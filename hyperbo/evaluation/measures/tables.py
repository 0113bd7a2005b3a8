"""Tables of an evaluation: regret at budgets, best raw objectives, and the short table of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.measures.aggregates import performance_profile, rank_methods
from hyperbo.evaluation.measures.regret import mean_over_tasks, regret_curves
from hyperbo.evaluation.measures.spread import ROUNDING, standard_deviation
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.run_array import RunArray, arrange_records, comparable
from hyperbo.evaluation.records.runs import INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN
from hyperbo.storage.printable import count

if TYPE_CHECKING:
    from rich.table import Table

BUDGETS = (1, 5, 10, 25, 50, 100)
# Of the short table.
CRITERION = 0.01
_BUDGETS = (1, 10)


def budgets_within(iterations: int) -> tuple[int, ...]:
    """The budgets of `BUDGETS` up to the length of the runs, and this length.

    >>> budgets_within(30)
    (1, 5, 10, 25, 30)
    """
    return tuple(sorted({budget for budget in BUDGETS if budget <= iterations} | {iterations}))


def regret_at_budgets(regrets: RunArray, budgets: Sequence[int]) -> pd.DataFrame:
    """Mean regret over tasks at some iterations: median and 20/80 percentile over seeds, and their mean.

    One row per method and budget: `method`, `iteration`, `median`, `lower`, `upper`, `mean`. The mean over
    tasks and seeds of normalised regret is what HPO-B reports (Pineda-Arango et al., "HPO-B: A Large-Scale
    Reproducible Benchmark for Black-Box HPO based on OpenML", NeurIPS 2021).

    Raises:
      InvalidInputError: a run is missing.
    """
    curves, mean = regret_curves(regrets), mean_over_tasks(regrets).mean(axis=1)
    levels = (curves.median, curves.lower, curves.upper, mean)
    return pd.DataFrame(
        [
            (
                method,
                budget,
                *(float(level[row, budget - 1]) for level in levels),
            )
            for row, method in enumerate(regrets.methods)
            for budget in budgets
        ],
        columns=["method", "iteration", "median", "lower", "upper", "mean"],
    )


def best_objectives(records: pd.DataFrame, metadata: EvaluationMetadata) -> RunArray:
    """Raw objective of the best trial so far, the one with the largest y, of every run.

    Trials that a run was given before its first iteration count too.

    Raises:
      InvalidInputError: the records are invalid, or not of this evaluation.
    """
    y = arrange_records(records, "y", metadata)
    values, objective = y.values, arrange_records(records, "objective", metadata).values
    if INITIAL_OBJECTIVE_COLUMN not in records.columns:
        return RunArray(y.methods, y.tasks, y.seeds, _best_so_far(values, objective))
    given, of_given = (
        arrange_records(records, column, metadata).values[..., :1]
        for column in (INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN)
    )
    # The given trials come before the first iteration; a run without any begins below every y.
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
    # A run that ended early has no value at the iterations that it lacks.
    return np.where(np.isnan(y), np.nan, np.take_along_axis(objective, at, axis=-1))


def best_objective_table(best: RunArray, *, minimise: bool = True) -> pd.DataFrame:
    """Best raw objective after the last iteration, from `best_objectives`: mean and deviation over seeds.

    For an error rate, this is Table 5 (summary). One row per task and method: `task`, `method`, `mean`,
    `std`, and `best`: whether no other method has a better mean on the task. A method that lacks a seed on
    the task has NaN and is never best.
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
    # fmin and fmax ignore NaN; a comparison with NaN is false.
    best = (np.fmin if minimise else np.fmax).reduce(mean, axis=0)
    # Means of equal values may differ by rounding: these methods are all best.
    is_best = np.abs(mean - best) <= ROUNDING * np.abs(best)
    return pd.DataFrame(
        [
            (task, method, float(mean[row, column]), float(std[row, column]), bool(is_best[row, column]))
            for column, task in enumerate(tasks)
            for row, method in enumerate(methods)
        ],
        columns=["task", "method", "mean", "std", "best"],
    )


def summary_frame(regrets: RunArray, *, means: bool = False) -> pd.DataFrame:
    """Regret at iterations 1, 10 and the last, rank, and share of runs solved, for each method.

    Args:
      regrets: regrets as run, missing runs included; all numbers are over `comparable(regrets)`.
      means: whether the mean over tasks and seeds stands beside each median, as HPO-B reports it.

    Returns:
      One row per method in the order of `regrets`, indexed by method: `regret_<t>` (median over seeds of the
      mean over tasks), with `means` also `mean_<t>`; `rank` (mean over seeds) and `solved` (regret below
      0.01), both after the last iteration. All NaN for a method that completed no task.

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    median = regret_curves(compared).median
    budgets = sorted({t for t in _BUDGETS if t <= compared.iterations} | {compared.iterations})
    columns = {f"regret_{t}": median[:, t - 1] for t in budgets}
    if means:
        mean = mean_over_tasks(compared).mean(axis=1)
        columns |= {f"mean_{t}": mean[:, t - 1] for t in budgets}
    columns["rank"] = rank_methods(compared).mean[:, -1]
    columns["solved"] = performance_profile(compared, CRITERION)[:, -1]
    return pd.DataFrame(columns, index=list(compared.methods)).reindex(list(regrets.methods))


def summary_table(regrets: RunArray, unit: str = "seed", *, normalised: bool = False) -> Table:
    """The `summary_frame` as a table for the terminal; `missing` where a method completed no task.

    Args:
      regrets: as of `summary_frame`.
      unit: what a seed is called.
      normalised: whether the regrets are normalised, as HPO-B's; then means stand beside the medians.

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    from rich.markup import escape
    from rich.table import Table

    frame = summary_frame(regrets, means=normalised)
    compared = comparable(regrets)
    kind, also = ("normalised", ", and mean") if normalised else ("simple", "")
    table = Table(
        title=f"Mean {kind} regret, {len(compared.tasks)} of {len(regrets.tasks)} tasks, "
        f"median{also} over {count(len(regrets.seeds), unit)}"
    )
    table.add_column("method")
    for column in frame.columns:
        name = column.replace("regret_", "regret at ").replace("mean_", "mean at ")
        table.add_column(f"solved at {CRITERION}" if name == "solved" else name, justify="right")
    for method, row in frame.iterrows():
        if row.isna().all():
            cells = ["missing"] * len(row)
        else:
            cells = [
                f"{value:.0%}"
                if column == "solved"
                else f"{value:.2f}"
                if column == "rank"
                else f"{value:.3g}"
                for column, value in row.items()
            ]
        table.add_row(escape(str(method)), *cells)
    return table
