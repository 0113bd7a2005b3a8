"""Prepared trials laid out as the arrays of tasks and matched blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from jaxtyping import Float64

from hyperbo.tuning_data import MatchedBlock, Task
from pd1_builder.preparations import Prepared, sorted_codes


def lay_out_tasks(prepared: Prepared, x: Float64[np.ndarray, "n d"]) -> Iterator[Task]:
    """The trials with a value, by task.

    Args:
      prepared: trials with the columns `task`, `task_dataset` and `trial_id`.
      x: their inputs in the unit cube.

    Yields:
      Tasks sorted by name; none of which no trial has a value.
    """
    codes, tasks = sorted_codes(prepared.table["task"])
    trial_ids = prepared.table["trial_id"].to_numpy()
    observed = np.flatnonzero(np.isfinite(prepared.y))
    for name, of_name in zip(tasks.to_pylist(), _grouped(codes[observed], len(tasks)), strict=True):
        rows = observed[of_name]
        if len(rows):
            yield Task(
                name=name,
                dataset=prepared.table["task_dataset"][int(rows[0])].as_py(),
                x=x[rows],
                y=prepared.y[rows],
                objective=prepared.objective[rows],
                trial_ids=tuple(trial_ids[rows]),
            )


def lay_out_blocks(
    prepared: Prepared, x: Float64[np.ndarray, "n d"], block_ids: Sequence[str], tasks: Collection[str]
) -> Iterator[MatchedBlock]:
    """The trials of matched blocks, inputs by tasks.

    Args:
      prepared: trials; with the columns `task`, `input_id` and `block` where there is any block.
      x: their inputs in the unit cube.
      block_ids: the blocks, in the order in which they are wanted.
      tasks: the tasks that may have a column.

    Yields:
      Blocks, without those of which fewer than two tasks are left. `y` is NaN where a trial has no value.
    """
    if not block_ids:
        return
    block_codes, known = sorted_codes(prepared.table["block"])
    groups = dict(zip(known.to_pylist(), _grouped(block_codes, len(known)), strict=True))
    input_codes, _ = sorted_codes(prepared.table["input_id"])
    task_codes, coded_tasks = sorted_codes(prepared.table["task"])
    names = coded_tasks.to_pylist()
    wanted = np.array([name in tasks for name in names], bool)
    for block_id in block_ids:
        rows = groups.get(block_id, np.empty(0, np.int64))
        columns, column = np.unique(task_codes[rows], return_inverse=True)
        keep = wanted[columns]
        if keep.sum() < 2:
            continue
        inputs, first, row = np.unique(input_codes[rows], return_index=True, return_inverse=True)
        values = np.full((len(inputs), len(columns)), np.nan)
        values[row, column] = prepared.y[rows]
        yield MatchedBlock(tuple(names[code] for code in columns[keep]), x[rows[first]], values[:, keep])


def _grouped(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """The rows of each code from 0 to `count`, ascending."""
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(np.argsort(codes, kind="stable"), ends)[:-1]
