"""What a policy is: a pytree that scores candidates given the observations so far."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float, Int, PRNGKeyArray

# Whatever pytree a policy carries from one observation to the next.
State = Any


@runtime_checkable
class Policy(Protocol):
    """Scores candidates given the observations so far; a pytree, so that many run as one program."""

    def start(self, candidates: Float[Array, "c d"], capacity: int) -> State:
        """The state before any observation, with room for `capacity` of them."""
        ...

    def score(
        self, state: State, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[State, Float[Array, " c"]]:
        """Score every candidate after `step` observations; the highest is observed next."""
        ...

    def observe(
        self, state: State, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> State:
        """Take in observation number `step`."""
        ...
