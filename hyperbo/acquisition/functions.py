"""Acquisition functions: which candidate to observe next, given a posterior.

All take the posterior mean and variance at each candidate, the variance of the noise and the largest y
observed so far, and score each candidate; what else a function needs comes after these. Larger is better. The
predictive variance is that of an observation: it includes the noise, as in Eqs. (acfun-ucb) and (acfun-pi).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.acquisition.improvement import log_improvement

# Section "Description of All Compared Methods": what an observation must improve on, in units of y.
PI_THRESHOLD = 0.1
# Appendix "Impact of Acquisition Functions": the paper's beta^(1/2) = 3 in the notation of Srinivas et al.
# (2010), Eq. (6), multiplies the standard deviation, as beta of Eq. (acfun-ucb) does.
OFFLINE_UCB_COEFFICIENT = 3.0
# Section "Results on the PD1 Online Hyperparameter Tuning Tasks".
ONLINE_UCB_COEFFICIENT = 1.8


def incumbent(best: Float[Array, ""]) -> Float[Array, ""]:
    """The largest y observed so far; 0 before any observation.

    Args:
      best: largest y observed so far, -inf where there is none. The paper does not say what stands in for it
        then; the value 0 is that of the published experiments.
    """
    return jnp.where(jnp.isneginf(best), 0.0, best)


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


def max_value_probability_of_improvement(
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    max_value: Float[Array, ""],
) -> Float[Array, " c"]:
    """Max-value PI, Eq. (acfun-pi): (mu - f*) / sigma with an estimate f* of the function's maximum.

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function.
      noise_variance: of the observations; the predictive variance includes it.
      best: takes no part; the estimate stands in for it.
      max_value: f*, as from `estimated_max_value`.
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
    Expected Improvement for Bayesian Optimization", NeurIPS 2023).

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function.
      noise_variance: of the observations; the predictive variance includes it.
      best: y+, the largest y observed so far; -inf where there is none, then 0 takes its place.
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
    """GP-UCB, Eq. (acfun-ucb): mu + beta sigma.

    Args:
      mean: posterior mean at each candidate.
      variance: posterior variance of the function.
      noise_variance: of the observations; the predictive variance includes it. With 0 in its place this is
        Eq. (alternative_ucb).
      best: takes no part.
      coefficient: beta, 3 in the offline experiments and 1.8 (`ONLINE_UCB_COEFFICIENT`) in the online ones;
        `hyperbo.theory` has that of the regret bounds.
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

    Args:
      mean: only its shape takes part.
      variance: takes no part.
      noise_variance: takes no part.
      best: takes no part.
      key: random key; a new one for every choice.
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
