"""A method of your own in one file: it scores candidates by their nearest neighbours in the training tasks.

A method is a frozen dataclass of settings with `fit` and `policy`, see `hyperbo.methods.Method`. Both return
pytrees of arrays, with equal shapes for all runs, because many runs are compiled as one program.

    hyperbo evaluate docs/examples/nearest_neighbour.toml

compares the method with others. A method may be in any module that Python can import. Only the files that
define its class and its bases are in the identity. After a change of another file that they import, use
another --runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from hyperbo.gp.numerics import double_precision
from hyperbo.methods import Scores, Task, pytree
from hyperbo.pretrain import Job, Progress, no_progress


@pytree
class Neighbours:
    """Points of the training tasks, their values standardised task by task."""

    x: Array
    y: Array


@pytree
class State:
    """The expected value of every candidate, and which candidates were observed."""

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
        """The expected value, or with probability epsilon a random number; -inf for observed candidates."""
        explore_key, draw_key = jax.random.split(key)
        explore = jax.random.uniform(explore_key) < self.epsilon
        draws = jax.random.uniform(draw_key, state.expected.shape, state.expected.dtype)
        values = jnp.where(explore, draws, state.expected)
        return state, Scores.without_prediction(jnp.where(state.observed, -jnp.inf, values))

    def observe(self, state: State, step: Array, candidate: Array, y: Array) -> State:
        """Mark the candidate as observed; the simulation records its value."""
        return replace(state, observed=state.observed.at[candidate].set(True))


@dataclass(frozen=True)
class NearestNeighbour:
    """Expects at a candidate the mean value of its nearest neighbours in the training tasks.

    Attributes:
      count: neighbours that are averaged over.
      points: number of training points that are kept, drawn from all tasks with replacement.
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
