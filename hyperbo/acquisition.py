"""Acquisition functions: which candidate to observe next, given a posterior."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

# Section "Description of All Compared Methods": what an observation must improve on, in units of y.
PI_THRESHOLD = 0.1


def pi_target(best: Float[Array, ""]) -> Float[Array, ""]:
    """The value that PI wants to exceed: the best observation plus 0.1; 0 before any observation.

    Args:
      best: largest y observed so far, -inf where there is none. The paper does not say what stands in for it
        then; the value 0 is that of the published experiments.
    """
    return jnp.where(jnp.isneginf(best), 0.0, best + PI_THRESHOLD)


def probability_of_improvement(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
) -> Float[Array, " c"]:
    """Thresholded PI, Eq. (acfun-pi): (mu - target) / sigma, monotone in the probability of improvement.

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function.
      noise_variance: of the observations; the predictive variance includes it.
      best: largest y observed so far, -inf where there is none.
    """
    return (mean - pi_target(best)) / jnp.sqrt(variance + noise_variance)
