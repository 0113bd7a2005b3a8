"""Rand: uniformly random candidates."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.gp.pytree import pytree


@pytree
class RandPolicy:
    """Scores candidates by independent uniform draws, with replacement as the offline protocol allows."""

    def start(self, candidates: Float[Array, "c d"], capacity: int) -> Float[Array, "c d"]:
        """Nothing is learned: the state is the candidates."""
        return candidates

    def score(
        self, state: Float[Array, "c d"], step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[Float[Array, "c d"], Float[Array, " c"]]:
        """A uniform draw for every candidate."""
        return state, jax.random.uniform(key, (state.shape[0],), state.dtype)

    def observe(
        self, state: Float[Array, "c d"], step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> Float[Array, "c d"]:
        """Forget the observation."""
        return state


@dataclass(frozen=True)
class Rand:
    """Random search has no settings: the candidates stand for the warped search space."""

    def policy(self, dimension: int, seed: int) -> RandPolicy:
        """The policy, the same for every seed; the simulation draws from the run's own key."""
        return RandPolicy()
