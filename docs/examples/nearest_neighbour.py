"""A method of one's own in one file: candidates by the values of their nearest neighbours in training tasks.

A method is a frozen dataclass of settings with `fit` and `policy`, see `hyperbo.methods.Method`. What both
return are pytrees of arrays, of equal shapes for all runs, because many runs are compiled as one program.

    hyperbo evaluate docs/examples/nearest_neighbour.toml

compares the method with others. Any module that Python can import may hold one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.methods import Scores
from hyperbo.pretrain import Job, Progress, no_progress
from hyperbo.tuning_data import Task


@pytree
class Neighbours:
    """Points of the training tasks, their values standardised task by task."""

    x: Array
    y: Array


@pytree
class State:
    """What is expected of every candidate, and which were observed."""

    expected: Array
    observed: Array


@pytree
class NearestNeighbourPolicy:
    """Go through the candidates from the best expected one down; now and then take a random one."""

    neighbours: Neighbours
    count: int = field(metadata={"static": True})
    epsilon: float = field(metadata={"static": True})

    def start(self, candidates: Array, mask: Array, capacity: int) -> State:
        """Average the values of each candidate's nearest training points."""

        def expected(candidate: Array) -> Array:
            squares = jnp.sum((self.neighbours.x - candidate) ** 2, axis=1)
            _, nearest = jax.lax.top_k(-squares, self.count)
            return jnp.mean(self.neighbours.y[nearest])

        return State(jax.lax.map(expected, candidates), jnp.zeros(len(candidates), bool))

    def score(self, state: State, step: Array, key: Array) -> tuple[State, Scores]:
        """What is expected, or with probability epsilon a random number; nothing for what was observed."""
        explore_key, draw_key = jax.random.split(key)
        explore = jax.random.uniform(explore_key) < self.epsilon
        draws = jax.random.uniform(draw_key, state.expected.shape, state.expected.dtype)
        values = jnp.where(explore, draws, state.expected)
        return state, Scores.without_prediction(jnp.where(state.observed, -jnp.inf, values))

    def observe(self, state: State, step: Array, candidate: Array, y: Array) -> State:
        """The value is the simulation's to record; here it matters only that it is known."""
        return replace(state, observed=state.observed.at[candidate].set(True))


@dataclass(frozen=True)
class NearestNeighbour:
    """Settings of the method.

    Attributes:
      count: neighbours that are averaged over.
      points: training points kept, drawn from all tasks with replacement: as many for every job.
      epsilon: probability of a random choice.
    """

    count: int = 10
    points: int = 2000
    epsilon: float = 0.1

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Neighbours]:
        """Learn from each job's training tasks; its seed draws the points."""
        return [self._neighbours(job) for job in jobs]

    def _neighbours(self, job: Job) -> Neighbours:
        tasks = job.training.tasks
        x = np.concatenate([task.x for task in tasks])
        y = np.concatenate([(task.y - task.y.mean()) / max(task.y.std(), 1e-12) for task in tasks])
        rows = np.random.default_rng(job.seed).integers(len(y), size=self.points)
        return Neighbours(jnp.asarray(x[rows]), jnp.asarray(y[rows]))

    def policy(self, fitted: Neighbours, task: Task) -> NearestNeighbourPolicy:
        """The same for every test task: its values are not looked at."""
        return NearestNeighbourPolicy(fitted, self.count, self.epsilon)
