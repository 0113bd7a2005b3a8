"""Related tasks for the tests of MIMO and RFGP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gp_cases import make_task, tuning_data

from hyperbo.bayesopt.offline import Run, Simulation, simulate
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.methods.protocol import Method
from hyperbo.pretrain import Job


def bowl(name: str, seed: int, size: int) -> Task:
    """A task whose best input is near (0.8, 0.2), at a height and with a curvature of its own."""
    random = np.random.default_rng(seed)
    x = random.random((size, 2))
    centre = np.array([0.8, 0.2]) + random.normal(scale=0.03, size=2)
    y = random.normal() - random.uniform(2.0, 6.0) * ((x - centre) ** 2).sum(axis=1)
    return make_task(name, name, x, y)


def bowls(tasks: int = 6, size: int = 30) -> TuningData:
    """Training tasks `b0`, `b1`, ..."""
    return replace(tuning_data(), tasks=tuple(bowl(f"b{seed}", seed, size) for seed in range(tasks)))


TEST_TASKS = tuple(bowl(f"test{seed}", 100 + seed, 60) for seed in range(4))


def run(method: Method, jobs: list[Job], tasks: tuple[Task, ...], iterations: int) -> Simulation:
    """Every task with what was learned from every job."""
    runs = [
        Run(method.policy(fitted, task), task, job.seed)
        for job, fitted in zip(jobs, method.fit(jobs), strict=True)
        for task in tasks
    ]
    return simulate(runs, iterations).require_usable()


def regret_by_job(choices: np.ndarray, tasks: tuple[Task, ...]) -> np.ndarray:
    """Regret after the last of the iterations given, the mean over the tasks of each job."""
    return (
        np.array([y.max() - y[row].max() for y, row in _of_runs(choices, tasks)])
        .reshape(-1, len(tasks))
        .mean(1)
    )


def expected_random_regret(tasks: tuple[Task, ...], draws: int) -> float:
    """Mean over tasks of the regret that uniform draws with replacement have in expectation."""
    regrets = []
    for task in tasks:
        below = (np.arange(len(task.y) + 1) / len(task.y)) ** draws
        regrets.append(task.y.max() - np.sort(task.y) @ np.diff(below))
    return float(np.mean(regrets))


def prediction_error(simulation: Simulation, tasks: tuple[Task, ...], iteration: int) -> float:
    """Mean absolute error of what was predicted for the observation of an iteration."""
    seen = np.array([y[row] for y, row in _of_runs(simulation.choices, tasks)])
    return float(np.abs(simulation.mean - seen)[:, iteration].mean())


def _of_runs(choices: np.ndarray, tasks: tuple[Task, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The values of each run's task with the run's choices; tasks in turn, as `run` has them."""
    return [(tasks[number % len(tasks)].y, row) for number, row in enumerate(choices)]
