"""The values of a task as the universal prior sees them: without a unit, whatever was measured."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float


def normal_scores(y: Float[Array, " n"], seen: Bool[Array, " n"]) -> Float[Array, " n"]:
    r"""The normal quantiles of the ranks r of values among those seen, equal ones with their average rank.

    .. math:: z_i = \Phi^{-1}\left(\frac{r_i - 3/8}{n + 1/4}\right)

    Blom, "Statistical Estimates and Transformed Beta-Variables", 1958. No monotone change of the objective
    changes a score, so one prior serves error rates, losses and times.

    Args:
      y: values to be maximised; -inf is allowed, as the value of an infeasible trial.
      seen: which rows count; the scores of the others are 0.

    >>> import jax.numpy as jnp
    >>> scores = normal_scores(jnp.array([3.0, 1e9, -1.0, 7.0]), jnp.array([True, True, True, False]))
    >>> [round(float(each), 2) + 0.0 for each in scores]
    [0.0, 0.87, -0.87, 0.0]
    """
    below = jnp.sum(seen & (y < y[:, None]), axis=1)
    equal = jnp.sum(seen & (y == y[:, None]), axis=1)
    rank = below + 0.5 * (equal + 1.0)
    share = (rank - 0.375) / (jnp.sum(seen) + 0.25)
    return jnp.where(seen, ndtri(jnp.where(seen, share, 0.5)), 0.0)
