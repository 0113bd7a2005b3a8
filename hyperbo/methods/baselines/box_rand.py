"""Box-Rand: random candidates of the smallest box that holds the training tasks' best inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.baselines.in_order import InOrder
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class Box:
    """The points of the unit cube between two corners, these included."""

    lower: Float[Array, " d"]
    upper: Float[Array, " d"]


@pytree
class BoxRandPolicy(InOrder):
    """Candidates in the box go before the others."""

    box: Box

    def priority(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
        """1 in the box, 0 outside."""
        inside = jnp.all((candidates >= self.box.lower) & (candidates <= self.box.upper), axis=1)
        return inside.astype(candidates.dtype)


@dataclass(frozen=True)
class BoxRand:
    r"""Settings of Box-Rand.

    .. math:: l_j = \min_{i, x \in B_i} x_j, \qquad u_j = \max_{i, x \in B_i} x_j

    B_i are the best inputs of training task i. Candidates in the box [l, u] are tried in random order, then
    those outside.

    Perrone, Shen, Seeger, Archambeau and Jenatton, "Learning search spaces for Bayesian optimization: another
    view of hyperparameter transfer learning", NeurIPS 2019: their box, with random search.

    Attributes:
      share: of each task's trials that are its best ones, 0 to 1; at least one trial is. 0 is the
        publication's box.
    """

    share: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise InvalidInputError(f"share = {self.share} is not between 0 and 1", where="Box-Rand")

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Box]:
        """The box of each job's training tasks; the seed has no say."""
        boxes = []
        for job in jobs:
            best = np.concatenate([self._best(task) for task in job.training.tasks])
            boxes.append(Box(jnp.asarray(best.min(axis=0)), jnp.asarray(best.max(axis=0))))
        return boxes

    def _best(self, task: Task) -> np.ndarray:
        count = max(1, math.ceil(self.share * len(task.y)))
        return task.x[np.argsort(-task.y, kind="stable")[:count]]

    def policy(self, fitted: Box, task: Task) -> BoxRandPolicy:
        """The same for every test task: its values are not looked at."""
        return BoxRandPolicy(fitted)
