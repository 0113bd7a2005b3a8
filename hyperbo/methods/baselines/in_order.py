"""A policy that tries every candidate once, in an order that is known before the first trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.methods.protocol import Scores


@pytree
class OrderState:
    """The place of every candidate in the order, and which were not observed yet."""

    priority: Float[Array, " c"]
    unseen: Bool[Array, " c"]


class InOrder(ABC):
    """Candidates with the highest priority go first; those of equal priority follow in random order.

    The random order is the simulation's, which breaks ties at random.
    """

    @abstractmethod
    def priority(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
        """The priority of every candidate."""

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> OrderState:
        """All candidates, none of them observed."""
        return OrderState(self.priority(candidates, mask), jnp.ones(len(candidates), bool))

    def score(self, state: OrderState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[OrderState, Scores]:
        """The priority; -inf for a candidate that was observed."""
        return state, Scores.without_prediction(jnp.where(state.unseen, state.priority, -jnp.inf))

    def observe(
        self, state: OrderState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> OrderState:
        """Cross the candidate off; its value changes nothing."""
        return replace(state, unseen=state.unseen.at[candidate].set(False))
