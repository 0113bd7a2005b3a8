"""The tasks of all jobs as rectangles, and the random subsets of them that a step trains on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float64, Int, Int32, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import pad_tasks
from hyperbo.pretrain.jobs import Job


@pytree
class TaskTable:
    """All tasks of all jobs, once; jobs refer to them by row. Each has its trials first, then padding."""

    x: Float[Array, "t n d"]
    y: Float[Array, "t n"]
    mask: Bool[Array, "t n"]
    sizes: Int[Array, " t"]


class TasksOfJobs(NamedTuple):
    """The table, and for every job which rows of it are its tasks.

    Attributes:
      table: the tasks.
      rows: of the table; a job with fewer tasks than another repeats its first one at weight zero.
      weights: of the tasks, with the mean 1 over a job's own.
      counts: number of each job's own tasks.
    """

    table: TaskTable
    rows: Int32[np.ndarray, "j t"]
    weights: Float64[np.ndarray, "j t"]
    counts: Int32[np.ndarray, " j"]


def tasks_of_jobs(jobs: Sequence[Job]) -> TasksOfJobs:
    """Put the tasks of all jobs in one table."""
    tasks = list({id(task): task for job in jobs for task in job.training.tasks}.values())
    row_of = {id(task): row for row, task in enumerate(tasks)}
    padded = pad_tasks(tasks)
    longest = max(len(job.training.tasks) for job in jobs)
    rows = np.zeros((len(jobs), longest), np.int32)
    weights = np.zeros((len(jobs), longest))
    for i, job in enumerate(jobs):
        own = [row_of[id(task)] for task in job.training.tasks]
        rows[i] = own + own[:1] * (longest - len(own))
        weights[i, : len(own)] = job.mean_one_weights()
    counts = np.array([len(job.training.tasks) for job in jobs], np.int32)
    arrays = (padded.x, padded.y, padded.mask, padded.mask.sum(axis=1))
    return TasksOfJobs(TaskTable(*map(jnp.asarray, arrays)), rows, weights, counts)


def draw_points(
    key: PRNGKeyArray, sizes: Int[Array, " t"], count: int
) -> tuple[Int32[Array, "t count"], Bool[Array, "t count"]]:
    """Draw a uniform subset of `count` of every task's rows, those before its padding, or all where it has
    fewer.

    Every task has a key of its own, so that what is drawn does not depend on the padding: a model is the same
    whether it is trained alone or in a batch. The work depends on `count`, not on the sizes: Floyd's
    algorithm (Bentley and Floyd, "Programming Pearls: a sample of brilliance", CACM 1987), in all tasks at
    once.

    Returns:
      The rows, in no useful order, and which of them are drawn; the others are row 0.
    """
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(len(sizes)))
    kept = jnp.minimum(sizes, count)[:, None]
    place = jnp.arange(count)
    drawn = place < kept
    last = jnp.where(drawn, sizes[:, None] - kept + place, 0).astype(jnp.int32)

    def up_to(key: PRNGKeyArray, last: Int32[Array, " count"]) -> Int32[Array, " count"]:
        return jax.random.randint(key, last.shape, 0, last + 1, jnp.int32)

    candidates = jax.vmap(up_to)(keys, last)

    def add(points: Int32[Array, "t count"], i: Int32[Array, ""]) -> tuple[Int32[Array, "t count"], None]:
        # A row up to the i-th last, or, where that is in already, the i-th last itself, which cannot be.
        taken = jnp.any(points == candidates[:, i, None], axis=1)
        return points.at[:, i].set(jnp.where(taken, last[:, i], candidates[:, i])), None

    points, _ = lax.scan(add, jnp.full_like(last, -1), jnp.arange(count, dtype=jnp.int32))
    return jnp.where(drawn, points, 0), drawn
