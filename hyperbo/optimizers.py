"""Minimisers as pure functions, to be compiled and batched by those who call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import optax
from jax import lax
from jaxtyping import Array, Float

Params = TypeVar("Params")


def minimise_lbfgs(
    objective: Callable[[Params], Float[Array, ""]], start: Params, iterations: int
) -> tuple[Params, Float[Array, " iterations"]]:
    """L-BFGS with a zoom line search, a fixed number of iterations.

    Args:
      objective: differentiable function of a pytree.
      start: where to start.
      iterations: how many iterations; the paper uses 100.

    Returns:
      The last point, and the objective before each iteration.
    """
    optimizer = optax.lbfgs()
    # Optax's types know nested containers, not registered pytrees: `Any` here, `Params` at the border.
    value_and_gradient = optax.value_and_grad_from_state(objective)

    def step(carry: tuple[Any, optax.OptState], _: None) -> tuple[tuple[Any, optax.OptState], Any]:
        params, state = carry
        value, gradient = value_and_gradient(params, state=state)
        updates, state = optimizer.update(
            gradient, state, params, value=value, grad=gradient, value_fn=objective
        )
        return (optax.apply_updates(params, updates), state), value

    first: Any = start
    (params, _), values = lax.scan(step, (first, optimizer.init(first)), length=iterations)
    return params, values
