"""Training of the acquisition functions of many jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree
from hyperbo.methods.acquisition_network import ReLUNetwork
from hyperbo.methods.episodes import KnownTasks
from hyperbo.methods.maf_training import MAFTraining, TasksOfJob, run_iterations, start_course
from hyperbo.methods.task_gp import TaskGP
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain import Job, Progress, all_trained, no_progress
from hyperbo.pretrain.jobs import check_jobs
from hyperbo.pretrain.task_table import tasks_of_jobs
from hyperbo.tuning_data import Task


@pytree
class TrainedAcquisition:
    """What a training leaves, as NumPy arrays.

    Attributes:
      network: the policy after the best iteration.
      rewards: mean reward per step of the episodes of every iteration, before its updates.
      validation_regrets: mean simple regret, over the steps and the validation tasks, after every iteration.
    """

    network: ReLUNetwork
    rewards: Float[np.ndarray | Array, " i"]
    validation_regrets: Float[np.ndarray | Array, " i"]


def train_acquisition(
    jobs: Sequence[Job], task_gp: TaskGP, training: MAFTraining, progress: Progress = no_progress
) -> list[TrainedAcquisition]:
    """Train one acquisition function per job, all in one compiled loop spread over the devices.

    Args:
      jobs: training tasks, drawn for episodes in proportion to their weights, and seeds.
      task_gp: of every training task.
      training: settings.
      progress: called with iterations done and in all.

    Returns:
      One network per job, in order.

    Raises:
      InvalidInputError: there is no job, the search spaces differ, or a job has fewer tasks than
        `validation_tasks`.
      TrainingError: the Gaussian process of a job's task, or the course of its training, is not finite; what
        was learned from the other jobs comes with the error.
    """
    check_jobs(jobs)
    for job in jobs:
        if len(job.training.tasks) < training.validation_tasks:
            raise InvalidInputError(
                f"validation_tasks = {training.validation_tasks}, but a job has "
                f"{len(job.training.tasks)} tasks",
                where=job.training.provenance.dataset,
                fix="lower validation_tasks",
            )
    # Jobs share most of their tasks: each is fitted once.
    tasks = {id(task): task for job in jobs for task in job.training.tasks}
    gps = {key: _fit(task_gp, task) for key, task in tasks.items()}
    unfit = [_first_failure([gps[id(task)] for task in job.training.tasks]) for job in jobs]
    left = [job for job, failure in zip(jobs, unfit, strict=True) if failure is None]
    trained = iter(_train(left, gps, training, progress) if left else [])
    return all_trained([next(trained) if failure is None else failure for failure in unfit])


def _fit(task_gp: TaskGP, task: Task) -> GaussianProcess | NumericalError:
    try:
        return task_gp.fit(task)
    except NumericalError as error:
        return error


def _first_failure(gps: Sequence[GaussianProcess | NumericalError]) -> NumericalError | None:
    return next((gp for gp in gps if isinstance(gp, NumericalError)), None)


def _train(
    jobs: Sequence[Job], gps: Mapping[int, Any], training: MAFTraining, progress: Progress
) -> list[TrainedAcquisition | NumericalError]:
    """Train on tasks whose Gaussian processes are there, by the identity of their objects."""
    in_jobs = tasks_of_jobs(jobs)
    in_row = {
        row: task
        for job, rows in zip(jobs, in_jobs.rows, strict=True)
        for row, task in zip(rows, job.training.tasks, strict=False)  # padding follows a job's own tasks
    }
    of_rows = [gps[id(in_row[row])] for row in range(len(in_row))]
    table = in_jobs.table
    tasks = KnownTasks(
        table.x, table.y, table.mask, jax.tree.map(lambda *leaves: jnp.stack(leaves), *of_rows)
    )
    validation = np.stack(
        [
            rows[np.random.default_rng(job.seed).choice(count, training.validation_tasks, replace=False)]
            for job, rows, count in zip(jobs, in_jobs.rows, in_jobs.counts, strict=True)
        ]
    )
    seeds = np.array([job.seed for job in jobs])
    own = pad_batch(TasksOfJob(*map(jnp.asarray, (in_jobs.rows, in_jobs.weights, validation, seeds))))
    dimension = jobs[0].training.search_space.dimension
    course = batched(partial(start_course, training, dimension))(own)
    run = batched(partial(run_iterations, training), shared=1)
    curves: list[tuple[np.ndarray, np.ndarray]] = []
    for done in range(0, training.iterations, training.iterations_per_call):
        progress(done, training.iterations)
        course, (rewards, regrets) = run(tasks, own, course)
        curves.append((np.asarray(rewards), np.asarray(regrets)))
    progress(training.iterations, training.iterations)
    rewards, regrets = (np.concatenate(parts, axis=1) for parts in zip(*curves, strict=True))
    networks: Any = jax.tree.map(np.asarray, course.best)
    return [
        _usable(job, TrainedAcquisition(jax.tree.map(lambda leaf, i=i: np.array(leaf[i]), networks), *curve))
        for i, (job, *curve) in enumerate(
            zip(jobs, rewards, regrets, strict=False)
        )  # padding follows the jobs
    ]


def _usable(job: Job, trained: TrainedAcquisition) -> TrainedAcquisition | NumericalError:
    if np.isfinite(trained.rewards).all() and np.isfinite(trained.validation_regrets).all():
        return trained
    return NumericalError(
        f"the training of an acquisition function on {job.training.provenance.dataset} with seed {job.seed} "
        "is not finite; lower the learning rate, or look for extreme y values"
    )
