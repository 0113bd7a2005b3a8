"""What a run has observed, what it tries next, and what a method of online Bayesian optimization is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, PRNGKeyArray

from hyperbo.gp.pytree import pytree
from hyperbo.methods.refit_policy import CAPACITIES
from hyperbo.pretrain import Job, Progress, no_progress
from hyperbo.warping import online_map

# Beyond the capacities of refits there are programs for so many more observations each.
_FURTHER = 50


@pytree
class Observations:
    """What one run has observed; the rows from `count` on are room for more.

    Attributes:
      x: inputs in the unit cube.
      y: warped objective, to be maximised; of an infeasible trial any number.
      feasible: which trials have a value; false in the rows that are room.
      count: how many observations there are.
    """

    x: Float[Array, "t d"]
    y: Float[Array, " t"]
    feasible: Bool[Array, " t"]
    count: Int[Array, ""]

    @property
    def seen(self) -> Bool[Array, " t"]:
        """Which rows are observations."""
        return jnp.arange(self.y.shape[0]) < self.count

    @property
    def mapped(self) -> Float[Array, " t"]:
        """The values in [-2, 2], -2 where infeasible: the paper's map, over what has been seen so far."""
        return online_map(self.y, self.feasible)


def observations_of(
    x: Float64[np.ndarray, "n d"], y: Float64[np.ndarray, " n"], capacity: int
) -> Observations:
    """Observations with room for more.

    Args:
      x: inputs in the unit cube.
      y: warped objective; NaN where the trial was infeasible.
      capacity: number of rows, at least that of the observations.
    """
    room = (0, capacity - len(y))
    feasible = np.isfinite(y)
    return Observations(
        jnp.asarray(np.pad(x, (room, (0, 0)))),
        jnp.asarray(np.pad(np.where(feasible, y, 0.0), room)),
        jnp.asarray(np.pad(feasible, room)),
        jnp.asarray(len(y)),
    )


def capacity_for(count: int) -> int:
    """How many rows the program for so many observations has; few numbers, so that few programs are compiled.

    It does not depend on how many are to come: a longer run begins as a shorter one does, to the last bit.

    >>> [capacity_for(count) for count in (0, 10, 11, 100, 101, 151)]
    [10, 10, 25, 100, 150, 200]
    """
    for capacity in CAPACITIES:
        if count <= capacity:
            return capacity
    return -(-count // _FURTHER) * _FURTHER


@pytree
class Proposal:
    """What to try next.

    Attributes:
      x: a point of the unit cube.
      score: of the acquisition function there; NaN or infinite where the method failed.
    """

    x: Float[Array, " d"]
    score: Float[Array, ""]


@runtime_checkable
class OnlineMethod(Protocol):
    """A method that tunes over the whole search space: a frozen dataclass of settings."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Any]:
        """Learn from the training tasks of each job, whose values are mapped already; all jobs as one batch.

        Returns:
          What was learned, one pytree of arrays per job, all of the same shapes.

        Raises:
          TrainingError: a job failed; what was learned from the others comes with the error.
        """
        ...

    def propose(self, fitted: Any, observations: Observations, key: PRNGKeyArray) -> Proposal:
        """Choose what one run tries next, in compiled code.

        Args:
          fitted: what `fit` returned for the job.
          observations: of the run so far.
          key: random key of the run and iteration.
        """
        ...
