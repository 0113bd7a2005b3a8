"""Minimisers as pure functions, to be compiled and batched by those who call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from hyperbo.compute.pytree import pytree

Params = TypeVar("Params")


@pytree
class LBFGSState:
    """A minimisation between two iterations: all that it needs to go on.

    Attributes:
      values: the objective before each iteration; after those done, the last one repeats.
      done: iterations done.
    """

    # Optax's types know nested containers, not registered pytrees: `Any` here, `Params` at the border.
    params: Any
    optimizer: optax.OptState
    values: Float[Array, "*starts iterations"]
    done: Int[Array, "*starts"]


def start_lbfgs(
    objective: Callable[[Params], Float[Array, ""]], start: Params, iterations: int
) -> LBFGSState:
    """The state of a minimisation before the first of its iterations."""
    params: Any = start
    value = jax.eval_shape(objective, start)
    values = jnp.zeros(iterations, value.dtype)
    # optax begins with weakly typed numbers, which no iteration returns: a second program would be compiled.
    optimizer = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), optax.lbfgs().init(params))
    return LBFGSState(params, optimizer, values, jnp.zeros((), jnp.int32))


def continue_lbfgs(
    objective: Callable[[Params], Float[Array, ""]],
    state: LBFGSState,
    iterations: int,
    tolerance: float | None = None,
) -> LBFGSState:
    """Do some more iterations of L-BFGS with a zoom line search, at most those that are left."""
    total = state.values.shape[0]
    until = jnp.minimum(state.done + iterations, total)

    def goes_on(state: LBFGSState) -> Bool[Array, ""]:
        left = state.done < until
        return left if tolerance is None else left & ~_converged(state, tolerance)

    def iterate(state: LBFGSState) -> LBFGSState:
        params, optimizer, value = _iterate(objective, state.params, state.optimizer)
        values = jnp.where(jnp.arange(total) >= state.done, value, state.values)
        return LBFGSState(params, optimizer, values, state.done + 1)

    return lax.while_loop(goes_on, iterate, state)


def _iterate(
    objective: Callable[[Params], Float[Array, ""]], params: Any, state: optax.OptState
) -> tuple[Any, optax.OptState, Float[Array, ""]]:
    """One iteration, and the objective before it."""
    optimizer = optax.lbfgs()
    value_and_gradient: Any = optax.value_and_grad_from_state(objective)
    value, gradient = value_and_gradient(params, state=state)
    updates, state = optimizer.update(gradient, state, params, value=value, grad=gradient, value_fn=objective)
    return optax.apply_updates(params, updates), state, value


def _converged(state: LBFGSState, tolerance: float) -> Bool[Array, ""]:
    before, last = state.values[jnp.maximum(state.done - 2, 0)], state.values[jnp.maximum(state.done - 1, 0)]
    return (state.done >= 2) & (before - last <= tolerance * jnp.maximum(jnp.abs(before), 1.0))


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
    state = start_lbfgs(objective, start, iterations)
    if tolerance is not None:
        state = continue_lbfgs(objective, state, iterations, tolerance)
        return state.params, state.values

    # XLA rounds a loop of known length otherwise than one that may end early: results on record are of this.
    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], Float[Array, ""]]:
        params, optimizer, value = _iterate(objective, *carry)
        return (params, optimizer), value

    (params, _), values = lax.scan(step, (state.params, state.optimizer), length=iterations)
    return params, values


def best_start(ends: Float[Array, " starts"]) -> Int[Array, ""]:
    """The start that ended lowest; one that ended in NaN counts only where all did.

    >>> int(best_start(jnp.array([jnp.nan, 2.0, 1.0])))
    2
    """
    return jnp.argmin(jnp.where(jnp.isnan(ends), jnp.inf, ends))
