"""Maximising an acquisition function in the unit cube: limited-memory BFGS with bounds, from many starts.

All starts take part in one compiled program, as rows of one batch, on any device and also inside a larger
compiled loop. SciPy's L-BFGS-B would go through the starts one by one and return to Python for every value.
The bounds are kept by projection: a coordinate at a bound that its gradient pushes against is pinned, the
quasi-Newton direction is that of the others, and the line search runs along the projected path (Bertsekas,
"Projected Newton Methods for Optimization Problems with Simple Constraints", SIAM J. Control and
Optimization 20, 1982).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Float64, Int, PRNGKeyArray

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import double_precision

MEMORY = 8  # pairs of steps and gradient changes; more than the dimensions of most search spaces need
FIRST_STEP = 0.1  # largest change of a coordinate while there is no pair
NEAR_BOUND = 1e-6  # a coordinate this close to a bound, and pushed to it, is taken there and pinned
SUFFICIENT_DECREASE = 1e-4
LINE_SEARCH_TRIES = 25
SMALLEST_STEP = 1e-9  # of any coordinate; a start that moves less has arrived
SMALLEST_DECREASE = 1e-14  # relative; less is rounding


class Maximum(NamedTuple):
    """Where an acquisition function is largest, and how large it is there."""

    x: Float64[np.ndarray, " d"]
    value: float


class _Search(NamedTuple):
    """All starts: where they are, and the last steps and gradient changes, the newest first."""

    x: Float[Array, "s d"]
    loss: Float[Array, " s"]
    gradient: Float[Array, "s d"]
    steps: Float[Array, "m s d"]
    changes: Float[Array, "m s d"]
    moving: Bool[Array, " s"]
    iteration: Int[Array, ""]


@double_precision
def maximise(
    acquisition: Callable[[Float[Array, "n d"]], Float[Array, " n"]],
    key: PRNGKeyArray,
    dimension: int,
    starts: int,
    iterations: int,
) -> Maximum:
    """Maximise an acquisition function in [0, 1]^d from uniformly random starts.

    The program is compiled once per function and shapes, not per call, if what changes between calls is data:
    `jax.tree_util.Partial(function, posterior, best)`, or a pytree with `__call__`. A new lambda each time is
    a new program each time, and so is a set of observations that grows without padding.

    Args:
      acquisition: scores of inputs, one per row; each depends on its own row only. Differentiable where it is
        finite; a row where it is NaN is never chosen before another.
      key: random key that draws the starts; the same key gives the same result.
      dimension: d.
      starts: how many.
      iterations: largest number of iterations of each start.

    Returns:
      The best point reached from any start and its score: never worse than the best start.

    Raises:
      InvalidInputError: there is no dimension or no start, or a negative number of iterations.
      NumericalError: no start has a score that is more than -inf.

    >>> def bowl(centre, x):
    ...     return -jnp.sum((x - centre) ** 2, axis=1)
    >>> acquisition = Partial(bowl, jnp.array([0.25, 2.0]))
    >>> maximum = maximise(acquisition, jax.random.key(0), dimension=2, starts=4, iterations=20)
    >>> maximum.x.round(6).tolist(), round(maximum.value, 6)
    ([0.25, 1.0], -1.0)
    """
    if dimension < 1 or starts < 1 or iterations < 0:
        raise InvalidInputError(
            f"dimension = {dimension}, starts = {starts}, iterations = {iterations}",
            where="maximise",
            fix="give at least one dimension and one start, and no negative number of iterations",
        )
    data = Partial(acquisition) if jax.tree_util.all_leaves([acquisition]) else acquisition
    x, value = climb(data, jax.random.uniform(key, (starts, dimension), jnp.float64), jnp.asarray(iterations))
    if jnp.isneginf(value):
        raise NumericalError(
            f"the acquisition function is NaN or -inf at all of {starts} starts; look for what makes the "
            "posterior's mean or variance NaN"
        )
    return Maximum(np.asarray(x), float(value))


@jax.jit
def climb(
    acquisition: Callable[[Array], Array], x: Float[Array, "s d"], iterations: Int[Array, ""]
) -> tuple[Float[Array, " d"], Float[Array, ""]]:
    """Maximise from given starts: `maximise` for use inside compiled code, and with starts of one's own.

    Args:
      acquisition: a pytree that can be called; see `maximise`.
      x: starts in the unit cube.
      iterations: largest number of iterations of each start.

    Returns:
      The best point reached from any start, and its score.
    """
    found, scores = climb_each(acquisition, x, iterations)
    best = jnp.argmax(scores)
    return found[best], scores[best]


@jax.jit
def climb_each(
    acquisition: Callable[[Array], Array], x: Float[Array, "s d"], iterations: Int[Array, ""]
) -> tuple[Float[Array, "s d"], Float[Array, " s"]]:
    """As `climb`, the point reached from each start, and its score: -inf where it is not finite at the start.

    Rows keep their places. So each row of `acquisition` may be a function of its own.
    """

    def losses(x: Float[Array, "s d"]) -> Float[Array, " s"]:
        loss = -acquisition(x)
        return jnp.where(jnp.isnan(loss), jnp.inf, loss)

    def losses_and_gradients(x: Float[Array, "s d"]) -> tuple[Float[Array, " s"], Float[Array, "s d"]]:
        # Rows do not depend on each other, so the gradient of the sum holds the gradient of every row.
        loss, pull_back = jax.vjp(losses, x)
        return loss, pull_back(jnp.ones_like(loss))[0]

    def proceed(search: _Search) -> Array:
        return jnp.any(search.moving) & (search.iteration < iterations)

    def iterate(search: _Search) -> _Search:
        direction = _direction(search)
        x, accepted = _line_search(losses, search, direction)
        loss, gradient = losses_and_gradients(x)
        step = x - search.x
        arrived = jnp.max(jnp.abs(step), axis=1) <= SMALLEST_STEP
        arrived |= search.loss - loss <= SMALLEST_DECREASE * jnp.abs(loss)
        arrived |= ~jnp.all(jnp.isfinite(gradient), axis=1)
        # A direction that leads nowhere is forgotten with all pairs; the steepest one gets the last word.
        had_pairs = jnp.any(search.steps != 0.0, axis=(0, 2))
        keep = accepted[:, None]
        steps, changes = (
            jnp.where(keep, jnp.concatenate([new[None], old[:-1]]), 0.0)
            for new, old in ((step, search.steps), (gradient - search.gradient, search.changes))
        )
        moving = search.moving & jnp.where(accepted, ~arrived, had_pairs)
        return _Search(x, loss, gradient, steps, changes, moving, search.iteration + 1)

    loss, gradient = losses_and_gradients(x)
    no_pairs = jnp.zeros((MEMORY, *x.shape), x.dtype)
    moving = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient), axis=1)
    found = lax.while_loop(
        proceed, iterate, _Search(x, loss, gradient, no_pairs, no_pairs, moving, jnp.asarray(0))
    )
    return found.x, -found.loss


def _direction(search: _Search) -> Float[Array, "s d"]:
    """The L-BFGS direction of the free coordinates; the pinned ones go to their bound."""
    x, gradient = search.x, search.gradient
    to_lower = (x <= NEAR_BOUND) & (gradient > 0.0)
    to_upper = (x >= 1.0 - NEAR_BOUND) & (gradient < 0.0)
    free = ~(to_lower | to_upper)
    steps, changes = jnp.where(free, search.steps, 0.0), jnp.where(free, search.changes, 0.0)
    product = jnp.sum(steps * changes, axis=2)
    # Only pairs along which the loss is convex keep the matrix positive definite.
    size = jnp.sqrt(jnp.sum(steps**2, axis=2) * jnp.sum(changes**2, axis=2))
    convex = product > 1e-10 * size
    inverse = jnp.where(convex, 1.0 / jnp.where(convex, product, 1.0), 0.0)
    newest = jnp.argmax(convex, axis=0)[None]
    curvature = jnp.take_along_axis(product, newest, axis=0)[0] / jnp.maximum(
        jnp.take_along_axis(jnp.sum(changes**2, axis=2), newest, axis=0)[0], jnp.finfo(x.dtype).tiny
    )
    free_gradient = jnp.where(free, gradient, 0.0)
    largest = jnp.maximum(jnp.max(jnp.abs(free_gradient), axis=1), jnp.finfo(x.dtype).tiny)
    scale = jnp.where(jnp.any(convex, axis=0), curvature, FIRST_STEP / largest)
    pairs = (steps, changes, inverse)

    def forth(direction: Array, pair: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        step, change, inverse = pair
        share = inverse * jnp.sum(step * direction, axis=1)
        return direction - share[:, None] * change, share

    def back(direction: Array, pair: tuple[tuple[Array, Array, Array], Array]) -> tuple[Array, None]:
        (step, change, inverse), share = pair
        share = share - inverse * jnp.sum(change * direction, axis=1)
        return direction + share[:, None] * step, None

    # Scans, not unrolled loops: the program compiles in a third of the time.
    direction, shares = lax.scan(forth, free_gradient, pairs)
    direction, _ = lax.scan(back, scale[:, None] * direction, (pairs, shares), reverse=True)
    return jnp.where(to_lower, -x, jnp.where(to_upper, 1.0 - x, -direction))


def _line_search(
    losses: Callable[[Array], Array], search: _Search, direction: Float[Array, "s d"]
) -> tuple[Float[Array, "s d"], Bool[Array, " s"]]:
    """Halve the step of each start until it decreases the loss enough.

    Returns:
      The point of each start after the search, and whether the start moved.
    """

    def proceed(state: tuple[Array, Array, Array, Array]) -> Array:
        _, accepted, _, tries = state
        return ~jnp.all(accepted) & (tries < LINE_SEARCH_TRIES)

    def attempt(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, accepted, length, tries = state
        tried = jnp.clip(search.x + length[:, None] * direction, 0.0, 1.0)
        slope = jnp.sum(search.gradient * (tried - search.x), axis=1)
        enough = losses(tried) <= search.loss + SUFFICIENT_DECREASE * slope
        passed = ~accepted & enough & (slope < 0.0)
        x = jnp.where(passed[:, None], tried, x)
        return x, accepted | passed, 0.5 * length, tries + 1

    # A start that has arrived is done before the first try.
    first = (search.x, ~search.moving, jnp.ones_like(search.loss), jnp.asarray(0))
    x, done, _, _ = lax.while_loop(proceed, attempt, first)
    return x, done & search.moving
