"""Online runs as a table: a row for each trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from hyperbo.online.journal import OnlineTrial
from hyperbo.warping import OutputWarping


def online_records(trials: Sequence[OnlineTrial], warpings: Mapping[str, OutputWarping]) -> pd.DataFrame:
    """Trials as records, ordered by method, task, seed and iteration.

    Args:
      trials: of any number of runs.
      warpings: of each task's objective.

    Returns:
      The columns `method`, `task`, `seed`, `iteration` (1, 2, ...), `y` (warped objective, not mapped: the
      map changes from iteration to iteration), `objective` and `infeasible`; both values are NaN where a
      trial was infeasible.
    """
    rows = [
        (*trial.run, trial.iteration, np.nan if trial.objective is None else trial.objective)
        for trial in trials
    ]
    frame = pd.DataFrame(rows, columns=["method", "task", "seed", "iteration", "objective"])
    frame["infeasible"] = frame["objective"].isna()
    y = np.full(len(frame), np.nan)
    for task, warping in warpings.items():
        feasible = ((frame["task"] == task) & ~frame["infeasible"]).to_numpy()
        y[feasible] = warping.warp(frame["objective"].to_numpy(np.float64)[feasible])
    frame.insert(4, "y", y)
    return frame.sort_values(["method", "task", "seed", "iteration"], ignore_index=True)


def best_so_far(records: pd.DataFrame) -> pd.DataFrame:
    """The best objective so far of every run: a column `best` beside the records' own.

    It is the objective of the largest y so far, NaN as long as all trials were infeasible.
    """
    ordered = records.sort_values(["method", "task", "seed", "iteration"], ignore_index=True)
    best = []
    for _, run in ordered.groupby(["method", "task", "seed"], sort=False):
        y = run["y"].fillna(-np.inf).to_numpy()
        # The row of the largest y so far, of equal ones the first: where a larger one is reached, that row.
        reached = np.maximum.accumulate(y)
        larger = reached > np.concatenate([[-np.inf], reached[:-1]])
        rows = np.maximum.accumulate(np.where(larger, np.arange(len(y)), 0))
        best.append(np.where(np.isneginf(reached), np.nan, run["objective"].to_numpy()[rows]))
    return ordered.assign(best=np.concatenate(best) if best else [])
