"""Flat training functions: found, named, and left out on request."""

from __future__ import annotations

import numpy as np

from hyperbo.errors import InvalidInputError
from hyperbo.tuning_data import TuningData

TOLERANCE = 1e-6


def flat_tasks(data: TuningData, tolerance: float = TOLERANCE, share: float = 1.0) -> tuple[str, ...]:
    """Tasks whose function is flat: all inputs have the same value, section "Negative Transfer".

    Such training functions pull a prior towards constants. Up to rounding, values are the same where

        |y - median y| <= tolerance * median over tasks of (max y - min y),

    the last median being taken over the tasks that are not constant. A task of a single trial cannot be seen
    to be flat and is not named.

    Args:
      data: the tasks.
      tolerance: largest distance from the median, as a share of the median range; with 0, values must be
        equal.
      share: of the trials that must have the same value; by the paper's definition all. Of the tables of
        HPO-B's search space 5636, which it names, several have one value in more than 90 % of their rows.

    Returns:
      Names of the flat tasks, in the order of the data.

    Raises:
      InvalidInputError: the tolerance is negative or not a number, or the share is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise InvalidInputError(f"share is {share}", fix="give more than 0 and at most 1")
    if not tolerance >= 0:
        raise InvalidInputError(f"tolerance is {tolerance}", fix="give 0 or a small share, such as 1e-6")
    ranges = np.array([np.ptp(task.y) for task in data.tasks])
    varied = ranges[ranges > 0]
    limit = tolerance * float(np.median(varied)) if len(varied) else 0.0
    return tuple(
        task.name
        for task in data.tasks
        if len(task.y) > 1 and np.mean(np.abs(task.y - np.median(task.y)) <= limit) >= share
    )


def without_flat(data: TuningData, tolerance: float = TOLERANCE) -> TuningData:
    """Leave the flat tasks out, of the matched blocks too.

    Args:
      data: the tasks.
      tolerance: as in `flat_tasks`.

    Returns:
      The data without them; the very same where no task is flat.

    Raises:
      InvalidInputError: as `flat_tasks`, or no task would be left.
    """
    flat = set(flat_tasks(data, tolerance))
    if not flat:
        return data
    tasks = tuple(task for task in data.tasks if task.name not in flat)
    if not tasks:
        raise InvalidInputError(
            "all tasks are flat", where=data.provenance.dataset, fix="keep them, or lower the tolerance"
        )
    return data.with_tasks(tasks)
