"""Pre-training by NLL: Adam on minibatches of points, and of tasks where there are very many."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, collect, identity, no_progress
from hyperbo.pretrain.nll_steps import (
    NLLState,
    NLLTraining,
    TasksOfModel,
    cast_floats,
    nll_steps,
    start_training,
)
from hyperbo.pretrain.task_table import TaskTable, tasks_of_jobs


def stopped(losses: Float64[np.ndarray, "calls j"], patience: int) -> Bool[np.ndarray, " j"]:
    """Which models stop early: those whose lowest loss is `patience` calls ago.

    >>> stopped(np.array([[3.0, 3.0], [2.0, 1.0], [1.0, 2.0], [2.0, 2.0]]), 2).tolist()
    [False, True]
    """
    if len(losses) == 0:
        return np.zeros(losses.shape[1], bool)
    return len(losses) - 1 - np.argmin(losses, axis=0) >= patience


@pytree
class _Course:
    """Training between two calls: all that a checkpoint must hold."""

    state: NLLState
    losses: Float64[np.ndarray, "calls j"]
    jitter: Float64[np.ndarray, " j"]


@double_precision
def pretrain_nll(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: NLLTraining,
    progress: Progress = no_progress,
    checkpoint: CheckpointFolder | None = None,
) -> list[Pretrained]:
    """Pre-train one model per job by NLL, Eq. (nll), all in one compiled loop spread over the devices.

    The loss of a step is the sum over the job's tasks, as in the paper's training; with task weights, N times
    the weighted mean.

    Args:
      jobs: training sets and seeds; they may share tasks.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called with steps done and steps in all.
      checkpoint: where to go on from and to leave checkpoints; the result is that of a training which was
        never interrupted, to the last bit.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    check_jobs(jobs)
    started = time.perf_counter()
    tasks = tasks_of_jobs(jobs)
    of_models, seeds = pad_batch(
        (
            cast_floats(
                TasksOfModel(*map(jnp.asarray, (tasks.rows, tasks.weights, tasks.counts))),
                training.precision,
            ),
            np.array([job.seed for job in jobs]),
        )
    )
    dimension = jobs[0].training.search_space.dimension
    state = batched(partial(start_training, dimension, architecture, training))(of_models, seeds)
    run = batched(partial(nll_steps, training), shared=1)
    table = cast_floats(tasks.table, training.precision)
    calls = training.steps // training.steps_per_call
    course = _Course(state, np.zeros((calls, len(seeds))), np.zeros(len(seeds)))

    opened = checkpoint.open(identity("NLL", jobs, architecture, training)) if checkpoint else nullcontext()
    with opened as checkpoints:
        done = 0
        if checkpoints is not None:
            done, course = checkpoints.restore(course)
        while done < calls:
            progress(done * training.steps_per_call, training.steps)
            course = _call(run, table, of_models, training, course, done)
            done += 1
            due = checkpoint is not None and (done % checkpoint.every_calls == 0 or done == calls)
            if checkpoints is not None and due:
                checkpoints.save(done, course)
    jax.block_until_ready(course.state)
    progress(training.steps, training.steps)
    gps = cast_floats(course.state.gp, "float64")
    return collect(jobs, gps, np.asarray(course.losses).T, np.asarray(course.jitter), started)


def _call(
    run: Any, table: TaskTable, of_models: TasksOfModel, training: NLLTraining, course: _Course, done: int
) -> _Course:
    """One call of the compiled loop; models that stopped early stay as they are."""
    losses, jitter = np.array(course.losses), np.array(course.jitter)
    still = np.zeros(losses.shape[1], bool)
    if training.stop_after is not None:
        still = stopped(losses[:done], training.stop_after)
        if still.all():
            losses[done:] = losses[done - 1]
            return _Course(course.state, losses, jitter)
    state, loss, largest = run(table, of_models, course.state)
    if still.any():
        kept = jnp.asarray(still)
        state = jax.tree.map(partial(_keep, kept), course.state, state)
    losses[done] = np.where(still, losses[done - 1], np.asarray(loss))
    return _Course(state, losses, np.where(still, jitter, np.maximum(jitter, np.asarray(largest))))


def _keep(kept: Bool[Array, " j"], before: Array, after: Array) -> Array:
    return jnp.where(kept.reshape(-1, *(1,) * (after.ndim - 1)), before, after)
