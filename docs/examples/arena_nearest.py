"""A method for the arena: candidates near the training tasks' best inputs, then near the run's own best."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from hyperbo.gp.numerics import double_precision
from hyperbo.methods import Scores, pytree


@pytree
class State:
    """The candidates, and a centre that moves to the best one observed."""

    x: Array
    centre: Array
    best: Array


@pytree
class NearestPolicy:
    """The candidate nearest to the centre is next; what was observed is not offered again."""

    centre: Array

    def start(self, candidates, mask, capacity):  # noqa: D102
        return State(candidates, self.centre, jnp.asarray(-jnp.inf, candidates.dtype))

    def score(self, state, step, key):  # noqa: D102
        return state, Scores.without_prediction(-jnp.sum((state.x - state.centre) ** 2, axis=1))

    def observe(self, state, step, candidate, y):  # noqa: D102
        centre = jnp.where(y > state.best, state.x[candidate], state.centre)
        return replace(state, centre=centre, best=jnp.maximum(y, state.best))


@dataclass(frozen=True)
class Nearest:
    """The method; it has no settings."""

    @double_precision
    def fit(self, jobs, progress=None):
        """The average of the best inputs of each job's training tasks."""
        return [jnp.asarray(np.mean([t.x[t.y.argmax()] for t in j.training.tasks], axis=0)) for j in jobs]

    def policy(self, fitted, task):  # noqa: D102
        return NearestPolicy(fitted)
