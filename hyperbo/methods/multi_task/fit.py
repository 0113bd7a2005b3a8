"""Fitting the surrogates of `multi_task` to the training tasks of many jobs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float64, Int, Int32, PRNGKeyArray

from hyperbo.compute.parallel import batched, pad_batch, unstack
from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.multi_task.model import Model, Surrogate, TaskObservations, train
from hyperbo.pretrain.jobs import Job, Progress, all_trained, check_jobs

CALLS = 20  # of the compiled training of `fit`, with a line of progress before each


@pytree
class TrainingData:
    """The training tasks of one job, or of all, stacked; their y is standardised by `mean` and `deviation`,
    which is 1 where all observations are equal; `spread` is that of a task, the unit of PI's threshold.
    """

    observations: TaskObservations
    mean: Float64[Array, "*jobs"]
    deviation: Float64[Array, "*jobs"]
    spread: Float64[Array, "*jobs"]
    tasks: Int32[Array, "*jobs"]


@pytree
class FittedSurrogate:
    """What was learned from the training tasks of one job, and the training data, which refits need."""

    data: TrainingData
    model: Model


@double_precision
def fit_surrogate(surrogate: Surrogate, jobs: Sequence[Job], progress: Progress) -> list[FittedSurrogate]:
    """Train a surrogate on the training tasks of each job, all jobs as one batch spread over the devices.

    Returns:
      One per job, in order, its leaves NumPy arrays.

    Raises:
      InvalidInputError: there is no job, their search spaces differ, or one has task weights.
      TrainingError: a model's parameters are not finite at the end; the others come with the error.
    """
    check_jobs(jobs)
    name, training = type(surrogate).__name__, surrogate.training
    if any(job.task_weights is not None for job in jobs):
        raise InvalidInputError(
            "a job has task weights, which are of the NLL", where=name, fix="leave them out for this method"
        )
    data, seeds = pad_batch(
        (training_data(jobs, training.max_points_per_task), np.array([job.seed for job in jobs]))
    )
    rows = max(len(job.training.tasks) for job in jobs) + 1
    draw, train_some, finish = _programs(surrogate, jobs[0].training.search_space.dimension, rows)
    model = draw(seeds)
    bounds = np.linspace(0, training.epochs, min(CALLS, training.epochs) + 1).astype(np.int32)
    for begin, end in pairwise(bounds):
        progress(int(begin), training.epochs)
        model = train_some(jnp.asarray(begin), jnp.asarray(end), data, seeds, model)
    model = finish(data, model)
    progress(training.epochs, training.epochs)
    fitted = unstack(FittedSurrogate(data, model), len(jobs))
    return all_trained([_usable(name, job, one) for job, one in zip(jobs, fitted, strict=True)])


def _usable(name: str, job: Job, fitted: FittedSurrogate) -> FittedSurrogate | NumericalError:
    if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fitted)):
        return fitted
    return NumericalError(
        f"{name}: training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} "
        f"with seed {job.seed} ended with parameters that are not finite; lower the learning rate, or look "
        "for extreme y values"
    )


@cache
def _programs(surrogate: Surrogate, dimension: int, rows: int) -> tuple[Callable[..., Any], ...]:
    """The compiled parts of `fit_surrogate`; kept: a later call with equal shapes compiles nothing."""
    return (
        batched(partial(_drawn, surrogate, dimension, rows)),
        batched(partial(_trained, surrogate), shared=2),
        batched(_with_test_task),
    )


def training_data(jobs: Sequence[Job], max_points_per_task: int | None) -> TrainingData:
    """All jobs' training tasks with standardised y, one after the other, padded to the longest job.

    The seeds draw the observations that are kept, at most `max_points_per_task` of every task.
    """
    chosen = [_chosen_rows(job, max_points_per_task) for job in jobs]
    shape = len(jobs), max(sum(map(len, rows)) for rows in chosen)
    x = np.zeros((*shape, jobs[0].training.search_space.dimension), np.float32)
    y, task, mask = np.zeros(shape, np.float32), np.zeros(shape, np.int32), np.zeros(shape, bool)
    means, deviations = np.zeros(len(jobs)), np.ones(len(jobs))
    for i, (job, rows) in enumerate(zip(jobs, chosen, strict=True)):
        own = np.s_[i, : sum(map(len, rows))]
        pairs = list(zip(job.training.tasks, rows, strict=True))
        values = np.concatenate([task.y[kept] for task, kept in pairs])
        # Values whose squares overflow end in an error that names the job, not in a warning here.
        with np.errstate(over="ignore", invalid="ignore"):
            means[i] = values.mean()
            deviations[i] = values.std() or 1.0
            y[own] = (values - means[i]) / deviations[i]
        x[own] = np.concatenate([task.x[kept] for task, kept in pairs])
        task[own] = np.repeat(np.arange(len(rows)), [len(kept) for kept in rows])
        mask[own] = True
    counts = np.array([len(rows) for rows in chosen], np.int32)
    observations = TaskObservations(*map(jnp.asarray, (x, y, task, mask)))
    spreads = np.array([job.training.spread for job in jobs])
    return TrainingData(observations, *map(jnp.asarray, (means, deviations, spreads, counts)))


def _chosen_rows(job: Job, most: int | None) -> list[Int[np.ndarray, " _"]]:
    """The rows of every training task that are trained on."""
    random = np.random.default_rng(job.seed)
    sizes = [len(task.y) for task in job.training.tasks]
    return [
        np.arange(size) if most is None or size <= most else random.choice(size, most, replace=False)
        for size in sizes
    ]


def _keys(seed: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Of the first parameters, and of the order of observations in training."""
    drawing, training = jax.random.split(jax.random.key(seed))
    return drawing, training


def _drawn(surrogate: Surrogate, dimension: int, rows: int, seed: Int[Array, ""]) -> Model:
    """An untrained model with embeddings of `rows` tasks."""
    task_key, model_key = jax.random.split(_keys(seed)[0])
    size = surrogate.training.embedding_size
    # A key for every task: how many there are in other jobs changes nothing.
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(task_key, jnp.arange(rows))
    embeddings = jax.vmap(lambda key: jax.random.normal(key, (size,), jnp.float32))(keys)
    parameters, constants = surrogate.initialise(model_key, dimension + size)
    trained, _ = ravel_pytree((embeddings, parameters))
    return Model(embeddings, parameters, constants, optax.adam(surrogate.learning_rate).init(trained))


def _trained(
    surrogate: Surrogate,
    begin: Int[Array, ""],
    end: Int[Array, ""],
    data: TrainingData,
    seed: Int[Array, ""],
    model: Model,
) -> Model:
    return train(surrogate, data.observations, model, _keys(seed)[1], begin, end)


def _with_test_task(data: TrainingData, model: Model) -> Model:
    """The model with the mean of the training tasks' embeddings for the task to come."""
    own = (jnp.arange(len(model.embeddings)) < data.tasks)[:, None]
    mean = jnp.mean(model.embeddings, axis=0, where=own)
    return replace(model, embeddings=model.embeddings.at[-1].set(mean))
