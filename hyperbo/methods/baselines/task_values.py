"""What the training tasks say of a candidate: the value of each task's trial that is nearest to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task, TuningData, pad_pairs
from hyperbo.gp.numerics import double_precision
from hyperbo.pretrain.jobs import Job

# Inputs that agree to so many decimals of the unit cube are one input.
DECIMALS = 9
# Distances are computed for so many candidates at a time that there are about so many: 8 MB.
_DISTANCES_AT_ONCE = 2**20

Values = Float64[np.ndarray, " n"]


@pytree
class TaskValues:
    """The inputs and values of N training tasks, padded.

    Attributes:
      x: inputs in the unit cube.
      value: of the task at each input.
      mask: which rows are trials; a task without one is padding.
    """

    x: Float[Array, "t n d"]
    value: Float[Array, "t n"]
    mask: Bool[Array, "t n"]

    @property
    def tasks(self) -> Bool[Array, " t"]:
        """Which rows are tasks."""
        return jnp.any(self.mask, axis=1)

    def at(self, candidates: Float[Array, "c d"]) -> Float[Array, "c t"]:
        """The value of every task at every candidate: that of the task's trial nearest to it.

        Where the task has tried the candidate itself, it is the task's own value. Padding has the value 0.
        """

        def of_candidate(candidate: Float[Array, " d"]) -> Float[Array, " t"]:
            squares = jnp.sum((self.x - candidate) ** 2, axis=2)
            nearest = jnp.argmin(jnp.where(self.mask, squares, jnp.inf), axis=1)
            return jnp.take_along_axis(self.value, nearest[:, None], axis=1)[:, 0]

        at_once = max(1, _DISTANCES_AT_ONCE // self.mask.size)
        return lax.map(of_candidate, candidates, batch_size=at_once)

    def average_at(self, candidates: Float[Array, "c d"]) -> Float[Array, " c"]:
        """The mean over tasks of their values at every candidate."""
        return jnp.sum(self.at(candidates), axis=1) / jnp.sum(self.tasks)


def share_of_range(y: Values) -> Values:
    """One minus normalised regret: 0 for the lowest value of a task, 1 for its best, 1 for all if it is flat.

    >>> share_of_range(np.array([3.0, 1.0, 2.0])).tolist()
    [1.0, 0.0, 0.5]
    """
    extent = y.max() - y.min()
    return (y - y.min()) / extent if extent > 0.0 else np.ones_like(y)


@double_precision
def recorded_values(jobs: Sequence[Job], scale: Callable[[Values], Values] = lambda y: y) -> list[TaskValues]:
    """The values of each job's training tasks, all of one shape.

    A matched input that diverged on a task counts as the task's lowest value. Values of one input on one task
    are averaged.

    Args:
      jobs: training tasks.
      scale: maps the values of a task to those that can be compared between tasks.
    """
    of_jobs = [
        [_distinct(*_trials(job.training, task), scale) for task in job.training.tasks] for job in jobs
    ]
    tasks = max(map(len, of_jobs))
    longest = max(len(y) for pairs in of_jobs for _, y in pairs)
    learned = []
    for pairs in of_jobs:
        padded = pad_pairs(pairs, longest)
        x, value, mask = (
            np.pad(array, [(0, tasks - len(pairs)), *[(0, 0)] * (array.ndim - 1)])
            for array in (padded.x, padded.y, padded.mask)
        )
        learned.append(TaskValues(jnp.asarray(x), jnp.asarray(value), jnp.asarray(mask)))
    return learned


def _trials(data: TuningData, task: Task) -> tuple[Float64[np.ndarray, "n d"], Values]:
    """The trials of a task, with the matched inputs that diverged on it."""
    diverged = [
        block.x[np.isnan(block.y[:, block.tasks.index(task.name)])]
        for block in data.blocks
        if task.name in block.tasks
    ]
    x = np.concatenate([task.x, *diverged])
    return x, np.append(task.y, np.full(len(x) - len(task.y), task.y.min()))


def _distinct(
    x: Float64[np.ndarray, "n d"], y: Values, scale: Callable[[Values], Values]
) -> tuple[Float64[np.ndarray, "m d"], Float64[np.ndarray, " m"]]:
    """The different inputs, each with the mean of its values."""
    inputs, place = np.unique(np.round(x, DECIMALS), axis=0, return_inverse=True)
    place = place.ravel()
    return inputs, scale(np.bincount(place, weights=y) / np.bincount(place))
