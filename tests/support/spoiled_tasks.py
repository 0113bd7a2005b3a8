"""Training tasks that say little or nothing true of a test task: what a prior must not be hurt by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hyperbo.data.tuning_data import MatchedBlock, Task, TuningData

Spoil = Callable[[TuningData, np.random.Generator], TuningData]
OfTask = Callable[[Task], Task]


def _each(change: OfTask, every: int = 1) -> Spoil:
    """Change every task, or every second one, by its values alone."""

    def spoil(data: TuningData, random: np.random.Generator) -> TuningData:
        tasks = (change(task) if not i % every else task for i, task in enumerate(data.tasks))
        return replace(data, tasks=tuple(tasks), blocks=())

    return spoil


def reversed_values(task: Task) -> Task:
    """y -> -y around the mean: the best is the worst."""
    return replace(task, y=2.0 * task.y.mean() - task.y)


def constant(task: Task) -> Task:
    """Every value is the task's mean."""
    return replace(task, y=np.full(len(task.y), task.y.mean()))


def foreign(task: Task) -> Task:
    """A bowl with its top near a corner, of the task's mean and deviation; the same for all tasks."""
    corner = np.where(np.arange(task.x.shape[1]) % 2, 0.1, 0.9)
    bowl = -np.sum((task.x - corner) ** 2, axis=1)
    return replace(task, y=task.y.mean() + task.y.std() * (bowl - bowl.mean()) / bowl.std())


def shuffled(data: TuningData, random: np.random.Generator) -> TuningData:
    """The values of each task in an order of its own."""
    tasks = (replace(task, y=random.permutation(task.y)) for task in data.tasks)
    return replace(data, tasks=tuple(tasks), blocks=())


def shuffled_alike(data: TuningData, random: np.random.Generator) -> TuningData:
    """The matched inputs in one other order for all tasks: a structure that all share, and a wrong one."""

    def of_task(block: MatchedBlock, order: np.ndarray, column: int, task: Task) -> Task:
        y = block.y[order, column]
        there = np.isfinite(y)
        ids = tuple(f"{task.name}/{row}" for row in np.flatnonzero(there))
        return replace(task, x=block.x[there], y=y[there], objective=y[there], trial_ids=ids)

    (block,) = data.blocks
    order = random.permutation(len(block.x))
    tasks = (
        of_task(block, order, block.tasks.index(task.name), task)
        for task in data.tasks
        if task.name in block.tasks
    )
    return replace(data, tasks=tuple(tasks), blocks=())


SPOILED: dict[str, Spoil] = {
    "honest": _each(lambda task: task),
    "reversed": _each(reversed_values),
    "half reversed": _each(reversed_values, every=2),
    "shuffled": shuffled,
    "shuffled alike": shuffled_alike,
    "constant": _each(constant),
    "foreign": _each(foreign),
    "half foreign": _each(foreign, every=2),
}
