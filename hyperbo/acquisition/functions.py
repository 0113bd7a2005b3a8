"""Acquisition functions: which candidate to observe next, given a posterior.

All take the posterior mean and variance at each candidate, the variance of the noise and the largest y
observed so far, and score each candidate; what else a function needs comes after these. Larger is better. The
predictive variance is that of an observation: it includes the noise, as in Eqs. 21 (acfun-ucb) and 22
(acfun-pi).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import log_ndtr, ndtr, ndtri
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

# Section 7.2 "Description of All Compared Methods": by how much an observation must improve.
PI_THRESHOLD = 0.1
# Appendix D.2 "Impact of Acquisition Functions": the paper's beta^(1/2) = 3 in the notation of Srinivas et
# al. (2010), Eq. (6), multiplies the standard deviation, as beta of Eq. 21 (acfun-ucb) does.
OFFLINE_UCB_COEFFICIENT = 3.0
# Section 7.5 "Results on the PD1 Online Hyperparameter Tuning Tasks".
ONLINE_UCB_COEFFICIENT = 1.8


def incumbent(best: Float[Array, ""]) -> Float[Array, ""]:
    """The largest y observed so far; 0 before any observation.

    Args:
      best: largest y observed so far, -inf where there is none. The paper does not say what stands in for it
        then; the value 0 is that of the published experiments.
    """
    return jnp.where(jnp.isneginf(best), 0.0, best)


def pi_target(best: Float[Array, ""], threshold: Float[Array, ""] | float = PI_THRESHOLD) -> Float[Array, ""]:
    """The value that PI wants to exceed: the best observation plus a threshold; 0 before any observation.

    Args:
      best: largest y observed so far, -inf where there is none; see `incumbent`.
      threshold: by how much an observation must improve, in the unit of y.
    """
    return jnp.where(jnp.isneginf(best), 0.0, best + threshold)


def probability_of_improvement(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    threshold: Float[Array, ""] | float = PI_THRESHOLD,
) -> Float[Array, " c"]:
    """Thresholded PI, Eq. 22 (acfun-pi): (mu - target) / sigma, monotone in the probability of improvement.

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function.
      noise_variance: of the observations; the predictive variance includes it.
      best: largest y observed so far, -inf where there is none.
      threshold: by how much an observation must improve on it, in the unit of y.
    """
    return (mean - pi_target(best, threshold)) / jnp.sqrt(variance + noise_variance)


def max_value_probability_of_improvement(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    max_value: Float[Array, ""],
) -> Float[Array, " c"]:
    """Max-value PI, Eq. 22 (acfun-pi): (mu - f*) / sigma with an estimate f* of the function's maximum.

    The arguments are those of `probability_of_improvement`, and `max_value`: f*, as from
    `estimated_max_value`, which replaces `best`.
    """
    return (mean - max_value) / jnp.sqrt(variance + noise_variance)


def log_expected_improvement(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
) -> Float[Array, " c"]:
    r"""The logarithm of EI over the best observation, usable where EI itself is 0 in floating point.

    .. math:: \ln \mathrm{E}[\max(y - y^+, 0)] = \ln \sigma + \ln\left(\varphi(z) + z \Phi(z)\right),
              \quad z = (\mu - y^+) / \sigma

    It has the maximum of EI, and a gradient where EI is flat at 0 (Ament et al., "Unexpected Improvements to
    Expected Improvement for Bayesian Optimization", NeurIPS 2023). The arguments are those of
    `probability_of_improvement`; y+ is `best`, or 0 where there is none.
    """
    deviation = jnp.sqrt(variance + noise_variance)
    return jnp.log(deviation) + log_improvement((mean - incumbent(best)) / deviation)


def upper_confidence_bound(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    coefficient: Float[Array, ""] | float = OFFLINE_UCB_COEFFICIENT,
) -> Float[Array, " c"]:
    """GP-UCB, Eq. 21 (acfun-ucb): mu + beta sigma.

    With 0 in place of the noise variance this is Eq. 33 (alternative_ucb).
    The arguments are those of `probability_of_improvement`, of which `best` is not used, and `coefficient`:
    beta, 3 in the offline experiments and 1.8 (`ONLINE_UCB_COEFFICIENT`) in the online ones. `hyperbo.theory`
    has that of the regret bounds.
    """
    return mean + coefficient * jnp.sqrt(variance + noise_variance)


def random_scores(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    key: PRNGKeyArray,
) -> Float[Array, " c"]:
    """A uniform draw for every candidate: its largest is a uniformly random candidate.

    Of the posterior only the shape of the mean is used. Each choice needs a new random key.
    """
    return jax.random.uniform(key, mean.shape, mean.dtype)


def best_candidate(scores: Float[Array, " c"], mask: Bool[Array, " c"]) -> Int[Array, ""]:
    """The candidate with the largest score; of several, the first.

    Args:
      scores: one per candidate; a score that is NaN counts as -inf.
      mask: which candidates may be chosen; at least one.

    >>> int(best_candidate(jnp.array([0.5, 2.0, 3.0, 2.0]), jnp.array([True, True, False, True])))
    1
    """
    allowed = jnp.where(mask & ~jnp.isnan(scores), scores, -jnp.inf)
    # The mask counts once more: where all scores are -inf, padding must not win by coming first.
    return jnp.argmax(mask & (allowed == jnp.max(allowed)))


# Expected improvement without cancellation in the tail. The integrals I_n(a) of (t - a)^n phi(t) / n! from a
# to infinity obey n I_n = I_(n-2) - a I_(n-1), with I_(-1) = phi. So the ratios r_n = I_n / I_(n-1) are a
# continued fraction of positive terms, r_n = 1 / (a + (n + 1) r_(n+1)), and the expected improvement at
# z = -a is I_1 = phi(a) r_0 r_1: no difference of nearly equal numbers, however far the tail.
# Above this z, phi(z) + z Phi(z) loses less than two digits; below, the continued fraction needs few terms.
TAIL_BEGINS = -4.0
TAIL_TERMS = 20


def _tail_ratios(a: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """r_0, the Mills ratio Phi(-a) / phi(a), and r_1 = I_1 / I_0."""
    # The last term is close to the fixed point of r = 1 / (a + n r).
    inner = outer = 2.0 / (a + jnp.sqrt(a * a + 4.0 * TAIL_TERMS))
    for n in range(TAIL_TERMS - 1, -1, -1):
        inner, outer = outer, 1.0 / (a + (n + 1) * outer)
    return outer, inner


def _split(z: Float[Array, "*n"]) -> tuple[Bool[Array, "*n"], Float[Array, "*n"], Float[Array, "*n"]]:
    """Where z is in the tail, and z limited to either side: neither branch may leave its own domain."""
    tail = z < TAIL_BEGINS
    return tail, jnp.where(tail, z, TAIL_BEGINS), jnp.where(tail, TAIL_BEGINS, z)


@jax.custom_jvp
def log_improvement(z: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""The logarithm of the expected improvement of a standard normal variable over -z.

    .. math:: \ln\left(\varphi(z) + z \Phi(z)\right)

    Its relative error is of the size of rounding from -1e150 to 1e300, and so is that of its derivative
    :math:`\Phi(z) / (\varphi(z) + z \Phi(z))`.

    >>> with jax.enable_x64(True):
    ...     value, slope = jax.value_and_grad(log_improvement)(jnp.asarray(-1e3))
    >>> round(float(value), 6), round(float(slope), 6)
    (-500014.734452, 1000.002)
    """
    tail, low, high = _split(z)
    mills, ratio = _tail_ratios(-low)
    in_tail = -0.5 * low * low - 0.5 * math.log(2.0 * math.pi) + jnp.log(mills * ratio)
    return jnp.where(tail, in_tail, jnp.log(norm.pdf(high) + high * ndtr(high)))


@log_improvement.defjvp
def _log_improvement_jvp(
    primals: tuple[Float[Array, "*n"]], tangents: tuple[Float[Array, "*n"]]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    (z,), (tangent,) = primals, tangents
    tail, low, high = _split(z)
    _, ratio = _tail_ratios(-low)
    cumulative = ndtr(high)
    slope = jnp.where(tail, 1.0 / ratio, cumulative / (norm.pdf(high) + high * cumulative))
    return log_improvement(z), slope * tangent


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
    positively correlated it errs upwards (Slepian's inequality), as Theorem 17 (regret_pi) asks.

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
