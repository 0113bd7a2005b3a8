"""An estimate of a function's maximum from its posterior, for max-value PI."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import log_ndtr, ndtri
from jaxtyping import Array, Bool, Float

# Each halves an interval of a few standard deviations: after these it is rounding.
BISECTIONS = 50


def estimated_max_value(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    mask: Bool[Array, " c"],
    quantile: Float[Array, ""] | float = 0.5,
) -> Float[Array, ""]:
    r"""A quantile of the function's maximum over the candidates, as if their values were independent.

    .. math:: f^*: \; \prod_c \Phi\left((f^* - \mu_c) / \sigma_c\right) = \mathrm{quantile}

    The approximation of Wang and Jegelka, "Max-value Entropy Search for Efficient Bayesian Optimization",
    ICML 2017, solved by bisection rather than fitted by a Gumbel distribution. Where the values are
    positively correlated it errs upwards (Slepian's inequality), as Theorem regret_pi asks.

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function, without noise.
      mask: which candidates count; at least one.
      quantile: between 0 and 1; 0.5 is the median.
    """
    # A candidate whose value is known is a step, not a division by zero.
    deviation = jnp.sqrt(jnp.maximum(variance, jnp.finfo(mean.dtype).tiny))
    log_quantile = jnp.log(jnp.asarray(quantile, mean.dtype))
    # One factor alone reaches the quantile no later than the product does; C equal factors no earlier.
    low, high = (
        jnp.max(jnp.where(mask, mean + deviation * ndtri(jnp.exp(log_probability)), -jnp.inf))
        for log_probability in (log_quantile, log_quantile / jnp.sum(mask))
    )

    def halve(_: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = interval
        middle = 0.5 * (low + high)
        below = jnp.sum(jnp.where(mask, log_ndtr((middle - mean) / deviation), 0.0)) < log_quantile
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = lax.fori_loop(0, BISECTIONS, halve, (low, high))
    return 0.5 * (low + high)
