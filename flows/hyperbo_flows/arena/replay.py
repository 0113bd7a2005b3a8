"""Replay the runs of a bundle on the data: every value that regret depends on must be the dataset's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd

from hyperbo.data.tuning_data import Task
from hyperbo.evaluation.records.runs import INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN
from hyperbo.storage.printable import printable
from hyperbo_flows.experiments.protocols import TestBed

# Of the problems of one kind, in one line; and of a value of others, in characters.
_MOST_NAMED, _LONGEST_SHOWN = 3, 200


def replayed(records: pd.DataFrame, bed: TestBed) -> Iterator[str]:
    """Observations that are not those of the data, in lines.

    Args:
      records: of a bundle, with its columns and no other.
      bed: the tasks, and what their runs are given.
    """
    for name, rows in records.groupby("task"):
        found = [task for task in bed.tests if task.name == name]
        if found:
            yield from _replayed_task(rows, found[0], bed)


def _replayed_task(rows: pd.DataFrame, task: Task, bed: TestBed) -> Iterator[str]:
    place = {trial: row for row, trial in enumerate(task.trial_ids)}
    at = rows["trial_id"].map(place)
    if at.isna().any():
        yield f"{task.name} has no trial {shown(rows['trial_id'][at.isna()].iloc[0])}"
        return
    at = at.to_numpy(np.int64)
    recorded = {
        "y": task.y[at],
        "objective": task.objective[at],
        "y_max": task.y.max(),
        "y_min": task.y.min(),
        **_best_given(rows, task, bed),
    }
    wrong = rows["task_dataset"].to_numpy() != task.dataset
    for column, value in recorded.items():
        found = rows[column].to_numpy()
        wrong |= (found != value) & ~(np.isnan(found) & np.isnan(value))
    if wrong.any():
        first = rows[wrong].iloc[0]
        yield (
            f"{int(wrong.sum())} observations of {task.name} are not those of the data, the first: "
            f"{first['method']}, seed {first['seed']}, iteration {first['iteration']}, trial "
            f"{first['trial_id']}, y {first['y']}"
        )
    again = _repeats(rows, task, bed)
    if again:
        yield f"{task.name}: a trial is observed twice before all are: {named_runs(again)}"


def _best_given(rows: pd.DataFrame, task: Task, bed: TestBed) -> dict[str, np.ndarray | float]:
    """The best y that each row's run was given, with its objective; NaN where runs are given none."""
    starts = bed.beginnings.get(task.name)
    if not starts:
        return {INITIAL_COLUMN: np.nan, INITIAL_OBJECTIVE_COLUMN: np.nan}
    best = np.array([max(each, key=lambda row: task.y[row]) for each in starts])
    of_run = best[rows["seed"].to_numpy() % len(starts)]
    return {INITIAL_COLUMN: task.y[of_run], INITIAL_OBJECTIVE_COLUMN: task.objective[of_run]}


def _repeats(rows: pd.DataFrame, task: Task, bed: TestBed) -> list[tuple[str, str, int]]:
    """The runs that observe a trial again, a given one included, while others are left."""
    found = []
    starts = bed.beginnings.get(task.name, ((),))
    for label, run in rows.groupby(["method", "seed"]):
        method, seed = cast("tuple[str, int]", label)
        given = [task.trial_ids[row] for row in starts[seed % len(starts)]]
        tried = [*given, *run.sort_values("iteration")["trial_id"]][: len(task.y)]
        if len(set(tried)) != len(tried):
            found.append((method, task.name, seed))
    return found


def shown(value: Any) -> str:
    """A value of a stranger, as messages have it."""
    return printable(repr(value), _LONGEST_SHOWN)


def named_runs(runs: list[tuple[str, str, int]]) -> str:
    """Runs in words, the first few by name."""
    told = "; ".join(f"{method} on {task} with seed {seed}" for method, task, seed in runs[:_MOST_NAMED])
    return told + (f"; and {len(runs) - _MOST_NAMED} more" if len(runs) > _MOST_NAMED else "")
