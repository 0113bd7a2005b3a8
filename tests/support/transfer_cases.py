"""Tasks that resemble each other, and whether a method learns from them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from gp_cases import SPACE, make_task

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.methods import Method, Rand
from hyperbo.pretrain import Job

POINTS = 30


def related_tasks(count: int = 5, points: int = POINTS, seed: int = 0) -> TuningData:
    """Tasks on one set of inputs, whose best ones are near (0.7, 0.3); some values are missing."""
    random = np.random.default_rng(seed)
    x = random.random((points, 2))
    columns = []
    for number in range(count):
        centre = np.array([0.7, 0.3]) + 0.05 * random.normal(size=2)
        bowl = -((x - centre) ** 2).sum(axis=1) * (1.0 + 0.2 * number)
        columns.append(bowl + 0.1 * number + 0.005 * random.normal(size=points))
    table = np.column_stack(columns)
    table[random.random(table.shape) < 0.05] = np.nan
    names = tuple(f"t{number}" for number in range(count))
    tasks = []
    for name, y in zip(names, table.T, strict=True):
        kept = np.isfinite(y)
        tasks.append(make_task(name, f"d-{name}", x[kept], y[kept]))
    block = MatchedBlock(names, x, table)
    return TuningData(SPACE, tuple(tasks), (block,), Provenance("case/related:1.0.0", "hash", "paper"))


def mean_regret(method: Method, seeds: int, iterations: int, repeats: bool = False) -> Any:
    """Mean over tasks, each left out once, and seeds of the best regret after each iteration."""
    data = related_tasks()
    cases = [
        (task, Job(data.with_tasks(tuple(other for other in data.tasks if other is not task)), seed))
        for task in data.tasks
        for seed in range(seeds)
    ]
    fitted = method.fit([job for _, job in cases])
    runs = [
        Run(method.policy(learned, task), task, job.seed)
        for learned, (task, job) in zip(fitted, cases, strict=True)
    ]
    simulation = simulate(runs, iterations, repeats=repeats).require_usable()
    return np.mean([best_so_far(run.task, row) for run, row in zip(runs, simulation.choices, strict=True)], 0)


def best_so_far(task: Task, choices: np.ndarray) -> np.ndarray:
    """The regret of the best choice so far."""
    return task.y.max() - np.maximum.accumulate(task.y[choices])


@cache
def regret_of_random_search(iterations: int) -> Any:
    """The same of many random runs, once for all methods."""
    return mean_regret(Rand(), 20, iterations)


def require_learning(method: Method, seeds: int = 1, iterations: int = 5) -> None:
    """The regret of the first choices is below half of that of random search."""
    learned, random = mean_regret(method, seeds, iterations), regret_of_random_search(iterations)
    assert learned.mean() < 0.5 * random.mean(), (learned, random)
