"""Rand: uniformly random candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.methods.protocol import Scores
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class RandPolicy:
    """Scores candidates by independent uniform draws."""

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> Float[Array, "c d"]:
        """Nothing is learned: the state is the candidates."""
        return candidates

    def score(
        self, state: Float[Array, "c d"], step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[Float[Array, "c d"], Scores]:
        """A uniform draw for every candidate."""
        draws = jax.random.uniform(key, (state.shape[0],), state.dtype)
        return state, Scores.without_prediction(draws)

    def observe(
        self, state: Float[Array, "c d"], step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> Float[Array, "c d"]:
        """Forget the observation."""
        return state


@dataclass(frozen=True)
class Rand:
    """Random search has no settings: the candidates stand for the warped search space."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[None]:
        """Nothing to learn."""
        return [None] * len(jobs)

    def policy(self, fitted: None, task: Task) -> RandPolicy:
        """The same for every seed and task; the simulation draws from the run's own key."""
        return RandPolicy()
