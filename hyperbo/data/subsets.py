"""Parts of tuning data, for the paper's studies: named tasks, fewer tasks or points, no flat tasks."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from hyperbo.data.tuning_data import MatchedBlock, Task, TuningData
from hyperbo.errors import InvalidInputError


def only_tasks(data: TuningData, names: Collection[str]) -> TuningData:
    """Keep the tasks named, in the order of the data, and the matched blocks that at least two of them share.

    Raises:
      InvalidInputError: a name is no task of the data, or nothing would be left.
    """
    data.require(names)
    kept = tuple(task for task in data.tasks if task.name in set(names))
    if not kept:
        raise InvalidInputError("no task is left", where=data.provenance.dataset)
    return data.with_tasks(kept)


def at_most_points(data: TuningData, count: int, seed: int) -> TuningData:
    """Keep at most `count` points of each task, drawn uniformly without replacement.

    Section 7.4.3 "Effects of the Number of Training Datapoints". Matched inputs are drawn from all blocks
    together, so that no task keeps more of them than `count` either; which of its points a task keeps is
    drawn apart from them. Draws of one seed are nested: the points kept for a count are among those of a
    larger one.

    Args:
      data: the tasks, all that are to be kept: matched inputs that diverged on one of them are not drawn.
      count: largest number of points; a task that has fewer keeps all.
      seed: of the draws; those of a task do not depend on the other tasks.

    Raises:
      InvalidInputError: the count is not positive.
    """
    if count < 1:
        raise InvalidInputError(f"at most {count} points per task", fix="keep at least one")
    blocks = data.complete_blocks
    of_input = np.repeat(np.arange(len(blocks)), [len(block.x) for block in blocks])
    kept = _first_of_permutation(len(of_input), count, seed, "matched inputs")
    begins = np.searchsorted(of_input, np.arange(len(blocks)))
    of_block = [kept[of_input[kept] == number] - begin for number, begin in enumerate(begins)]
    few = (
        MatchedBlock(block.tasks, block.x[rows], block.y[rows])
        for block, rows in zip(blocks, of_block, strict=True)
    )
    return replace(
        data,
        tasks=tuple(_few_points(task, count, seed) for task in data.tasks),
        blocks=tuple(block for block in few if len(block.x) >= 1),
    )


def _few_points(task: Task, count: int, seed: int) -> Task:
    if len(task.y) <= count:
        return task
    rows = _first_of_permutation(len(task.y), count, seed, task.name)
    return replace(
        task,
        x=task.x[rows],
        y=task.y[rows],
        objective=task.objective[rows],
        trial_ids=tuple(task.trial_ids[row] for row in rows),
    )


def _first_of_permutation(size: int, count: int, seed: int, name: str) -> Int64[np.ndarray, " kept"]:
    """The first `count` of a random order, ascending: of one seed and name, nested by `count`."""
    order = np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(size)
    return np.sort(order[:count]).astype(np.int64)


def fewer_tasks(data: TuningData, count: int, seed: int, drop_first: Collection[str] = ()) -> TuningData:
    """Remove tasks until `count` are left: those to be dropped first, then others, each in random order.

    Section 7.4.4 "Effects of the Number of Training Tasks", where the tasks that share the test task's
    dataset go first. Of one seed, the tasks left are nested as `at_most_points` is.

    Args:
      data: the tasks.
      count: how many to keep; data of no more tasks stays as it is.
      seed: of the order.
      drop_first: names of tasks that go before all others; they need not be in the data.

    Raises:
      InvalidInputError: the count is not positive.
    """
    if count < 1:
        raise InvalidInputError(f"{count} training tasks", fix="keep at least one")
    if count >= len(data.tasks):
        return data
    order = np.random.default_rng([seed, zlib.crc32(b"tasks")]).permutation(len(data.tasks))
    names = [data.tasks[place].name for place in order]
    return only_tasks(data, sorted(names, key=lambda name: name not in drop_first)[-count:])


TOLERANCE = 1e-6


def flat_tasks(data: TuningData, tolerance: float = TOLERANCE, share: float = 1.0) -> tuple[str, ...]:
    """Tasks whose function is flat: all inputs have the same value, section 7.6.3 "Negative Transfer".

    Such training functions pull a prior towards constants. Up to rounding, values are the same where

        |y - median y| <= tolerance * median over tasks of (max y - min y),

    the last median being taken over the tasks that are not constant. A task with a single trial
    is never named.

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
    """Leave the flat tasks out, of the matched blocks too; the tolerance is that of `flat_tasks`.

    Raises:
      InvalidInputError: the tolerance is negative or not a number, or no task would be left.
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
