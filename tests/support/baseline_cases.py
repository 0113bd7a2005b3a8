"""Training and test tasks for the simple baselines, and their choices by plain loops."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from gp_cases import make_task, matched_block, tuning_data, with_blocks

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.methods import Method
from hyperbo.pretrain import Job


def training(sizes: tuple[int, ...] = (6, 9, 7), inputs: int = 8, seed: int = 0) -> TuningData:
    """Tasks with trials of their own and matched ones, of which the first diverged on the last task."""
    data = tuning_data(sizes, seed)
    names = tuple(task.name for task in data.tasks)
    block = matched_block(names, inputs, seed + 100)
    block.y[0, -1] = np.nan
    tasks = []
    for task, y in zip(data.tasks, block.y.T, strict=True):
        there = np.isfinite(y)
        x = np.concatenate([task.x, block.x[there]])
        tasks.append(make_task(task.name, task.dataset, x, np.append(task.y, y[there])))
    return with_blocks(replace(data, tasks=tuple(tasks)), block)


def new_task(x: np.ndarray, seed: int = 5, name: str = "new") -> Task:
    """A task with these inputs whose values have nothing to do with them."""
    return make_task(name, "other", x, np.random.default_rng(seed).normal(size=len(x)))


def value_of_nearest(data: TuningData, task: Task, point: np.ndarray) -> float:
    """The value of a task at a point, by a loop over its trials; the lowest where it diverged there."""
    x, y = list(task.x), list(task.y)
    for block in data.blocks:
        for at, value in zip(block.x, block.y[:, block.tasks.index(task.name)], strict=True):
            if np.isnan(value):
                x.append(at)
                y.append(min(task.y))
    return float(y[min(range(len(x)), key=lambda row: sum((x[row] - point) ** 2))])


def table_of(data: TuningData, x: np.ndarray) -> np.ndarray:
    """The values of all tasks at all points, one column per task."""
    return np.array([[value_of_nearest(data, task, point) for task in data.tasks] for point in x])


def shares_of(data: TuningData, x: np.ndarray) -> np.ndarray:
    """The same, from the lowest to the highest value of each task."""
    lows, highs = (np.array([pick(task.y) for task in data.tasks]) for pick in (min, max))
    return (table_of(data, x) - lows) / (highs - lows)


def choices(
    method: Method, data: TuningData, *tests: Task, iterations: int, seed: int = 0
) -> list[list[int]]:
    """What the method chooses on each test task, all runs in one batch."""
    (fitted,) = method.fit([Job(data, seed)])
    run = partial(Run, seed=seed)
    runs = [run(method.policy(fitted, task), task) for task in tests]
    return simulate(runs, iterations).require_usable().choices.tolist()
