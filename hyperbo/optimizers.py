"""Minimisers as pure functions, to be compiled and batched by those who call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float

Params = TypeVar("Params")


def minimise_lbfgs(
    objective: Callable[[Params], Float[Array, ""]],
    start: Params,
    iterations: int,
    tolerance: float | None = None,
) -> tuple[Params, Float[Array, " iterations"]]:
    """L-BFGS with a zoom line search.

    Args:
      objective: differentiable function of a pytree.
      start: where to start.
      iterations: how many iterations; the paper uses 100.
      tolerance: stop once an iteration lowers the objective by no more than this share of its size; None:
        never stop early.

    Returns:
      The last point, and the objective before each iteration; after an early stop, its last value repeats.
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
    carry = (first, optimizer.init(first))
    if tolerance is None:
        (params, _), values = lax.scan(step, carry, length=iterations)
        return params, values

    def lowers(loop: tuple[Any, Array, Array]) -> Array:
        _, done, values = loop
        before, last = values[jnp.maximum(done - 2, 0)], values[jnp.maximum(done - 1, 0)]
        small = before - last <= tolerance * jnp.maximum(jnp.abs(before), 1.0)
        return (done < iterations) & ((done < 2) | ~small)

    def advance(loop: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        carry, done, values = loop
        carry, value = step(carry, None)
        return carry, done + 1, jnp.where(jnp.arange(iterations) >= done, value, values)

    size = jax.eval_shape(objective, first)
    loop = (carry, jnp.zeros((), jnp.int32), jnp.zeros(iterations, size.dtype))
    (params, _), _, values = lax.while_loop(lowers, advance, loop)
    return params, values


def minimise_from_starts(
    objective: Callable[[Params], Float[Array, ""]],
    starts: Params,
    iterations: int,
    tolerance: float | None = None,
) -> tuple[Params, Float[Array, " iterations"]]:
    """The best of L-BFGS from several starts, one after the other.

    Args:
      objective: differentiable function of a pytree.
      starts: pytree whose leaves carry a leading axis of starts.
      iterations: of L-BFGS, from each start.
      tolerance: as in `minimise_lbfgs`.

    Returns:
      The last point with the lowest objective, and the objective before each iteration of its run. A run that
      ended in NaN is never the best while another did not.
    """

    def run(start: Any) -> tuple[Any, Array, Array]:
        params, values = minimise_lbfgs(objective, start, iterations, tolerance)
        return params, values, objective(params)

    params, values, last = lax.map(run, starts)
    best = jnp.argmin(jnp.where(jnp.isnan(last), jnp.inf, last))
    return jax.tree.map(lambda leaf: leaf[best], params), values[best]
