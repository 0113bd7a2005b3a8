"""Parts of tuning data: named tasks, fewer tasks, fewer points, as the studies of the paper take them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from hyperbo.errors import InvalidInputError
from hyperbo.tuning_data import MatchedBlock, Task, TuningData


def only_tasks(data: TuningData, names: Collection[str]) -> TuningData:
    """Keep the tasks named, and the matched blocks that at least two of them share.

    Args:
      data: the tasks.
      names: those to keep, in any order; the tasks stay in that of the data.

    Raises:
      InvalidInputError: a name is no task of the data, or nothing would be left.
    """
    unknown = sorted(set(names) - {task.name for task in data.tasks})
    if unknown:
        raise InvalidInputError(
            f"no task {', '.join(map(repr, unknown))}",
            where=data.provenance.dataset,
            fix=f"use some of {', '.join(task.name for task in data.tasks)}",
        )
    kept = tuple(task for task in data.tasks if task.name in set(names))
    if not kept:
        raise InvalidInputError("no task is left", where=data.provenance.dataset)
    return data.with_tasks(kept)


def at_most_points(data: TuningData, count: int, seed: int) -> TuningData:
    """Keep at most so many points of every task, drawn uniformly without replacement.

    Section "Effects of the Number of Training Datapoints". Matched inputs are drawn from all blocks together,
    so that no task keeps more of them than `count` either; which of its points a task keeps is drawn apart
    from them. Draws of one seed are nested: the points kept for a count are among those of a larger one.

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
    few = (
        _rows(block, kept[of_input[kept] == number] - begin)
        for number, (block, begin) in enumerate(zip(blocks, begins, strict=True))
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


def _rows(block: MatchedBlock, rows: Int64[np.ndarray, " kept"]) -> MatchedBlock:
    return MatchedBlock(block.tasks, block.x[rows], block.y[rows])


def fewer_tasks(data: TuningData, count: int, seed: int, drop_first: Collection[str] = ()) -> TuningData:
    """Remove tasks until `count` are left: those to be dropped first, then others, each in random order.

    Section "Effects of the Number of Training Tasks", where the tasks that share the test task's dataset go
    first. Of one seed, the tasks left are nested as `at_most_points` is.

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
    return only_tasks(data, _removal_order(data.tasks, seed, drop_first)[-count:])


def _removal_order(tasks: Sequence[Task], seed: int, drop_first: Collection[str]) -> list[str]:
    order = np.random.default_rng([seed, zlib.crc32(b"tasks")]).permutation(len(tasks))
    names = [tasks[place].name for place in order]
    return sorted(names, key=lambda name: name not in drop_first)
