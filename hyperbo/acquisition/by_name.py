"""Acquisition functions by their names: in compiled code, and on plain arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, PRNGKeyArray
from numpy.typing import ArrayLike

from hyperbo.acquisition.functions import (
    OFFLINE_UCB_COEFFICIENT,
    PI_THRESHOLD,
    estimated_max_value,
    log_expected_improvement,
    max_value_probability_of_improvement,
    probability_of_improvement,
    random_scores,
    upper_confidence_bound,
)
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import double_precision, plain_array

ACQUISITIONS = (
    "probability_of_improvement",
    "expected_improvement",
    "upper_confidence_bound",
    "max_value_probability_of_improvement",
    "random",
)


def check_acquisition(name: str, coefficient: float, threshold: float, where: str) -> None:
    """Refuse an unknown acquisition function, a coefficient not of GP-UCB, and a threshold not of PI.

    Raises:
      InvalidInputError: the name is not in `ACQUISITIONS`, or a number is negative or not finite.
    """
    if name not in ACQUISITIONS:
        raise InvalidInputError(
            f"unknown acquisition function {name!r}", where=where, fix=f"use {', '.join(ACQUISITIONS)}"
        )
    for field, value in (("coefficient", coefficient), ("threshold", threshold)):
        if not 0.0 <= value < float("inf"):
            raise InvalidInputError(f"{field} = {value}", where=where, fix="give 0 or more")


def score_candidates(
    name: str,
    mean: Float[Array, " c"],
    variance: Float[Array, " c"],
    noise_variance: Float[Array, ""],
    best: Float[Array, ""],
    mask: Bool[Array, " c"],
    coefficient: float,
    threshold: Float[Array, ""] | float,
    key: PRNGKeyArray,
) -> Float[Array, " c"]:
    """Score padded candidates, in compiled code; the mask says which are no padding.

    The coefficient is that of `upper_confidence_bound`, the threshold that of `probability_of_improvement`,
    in the unit of y, the key that of `random`.
    """
    posterior = (mean, variance, noise_variance, best)
    match name:
        case "probability_of_improvement":
            return probability_of_improvement(*posterior, threshold)
        case "expected_improvement":
            return log_expected_improvement(*posterior)
        case "upper_confidence_bound":
            return upper_confidence_bound(*posterior, coefficient)
        case "max_value_probability_of_improvement":
            return max_value_probability_of_improvement(*posterior, estimated_max_value(mean, variance, mask))
        case _:
            return random_scores(*posterior, key)


@double_precision
def acquisition_values(
    name: str,
    mean: ArrayLike,
    variance: ArrayLike,
    *,
    noise_variance: float,
    best: float | None = None,
    coefficient: float = OFFLINE_UCB_COEFFICIENT,
    threshold: float = PI_THRESHOLD,
    seed: int = 0,
) -> Float64[np.ndarray, " c"]:
    """Score candidates by the posterior at each; the one with the largest value is observed next.

    Where an observation is known exactly (its variance and the noise are 0), the value is the limit. That of
    `expected_improvement` is the logarithm of the improvement, -inf where there is none.

    Args:
      name: one of `ACQUISITIONS`. The value of `expected_improvement` is its logarithm. That of the two
        probabilities of improvement is not a probability but (mean - target) / deviation, which grows with
        it; the target of `probability_of_improvement` is `best` + `threshold`, or 0 without `best`.
      mean: posterior mean at each candidate.
      variance: posterior variance of the function at each candidate, without noise.
      noise_variance: of the observations; the predictive variance includes it.
      best: largest y observed so far; None before any observation.
      coefficient: of the standard deviation in `upper_confidence_bound`.
      threshold: of `probability_of_improvement`, in the unit of y; the paper has 0.1.
      seed: of the draws of `random`.

    Returns:
      One value per candidate, computed in float64 whatever the default precision of JAX.

    Raises:
      InvalidInputError: the name is unknown, the coefficient, the threshold or a variance is negative, the
        arrays are not one value per candidate, or a value is not finite.

    >>> acquisition_values("upper_confidence_bound", [0.5, 1.0], [0.75, 0.0], noise_variance=0.25).tolist()
    [3.5, 2.5]
    """
    check_acquisition(name, coefficient, threshold, "acquisition_values")
    means, variances, noise, largest = (
        plain_array(field, value, axes, "acquisition_values")
        for field, value, axes in (
            ("mean", mean, 1),
            ("variance", variance, 1),
            ("noise_variance", noise_variance, 0),
            ("best", 0.0 if best is None else best, 0),
        )
    )
    if not len(means) or variances.shape != means.shape:
        raise InvalidInputError(
            f"mean has the shape {means.shape} and variance {variances.shape}",
            where="acquisition_values",
            fix="give one of each per candidate",
        )
    if (variances < 0.0).any() or noise < 0.0:
        raise InvalidInputError("a variance is negative", where="acquisition_values")
    values = score_candidates(
        name,
        jnp.asarray(means),
        jnp.asarray(variances),
        jnp.asarray(noise),
        jnp.asarray(-np.inf if best is None else largest),
        jnp.ones(len(means), bool),
        coefficient,
        threshold,
        jax.random.key(seed),
    )
    # A deviation of 0 gives 0 / 0 where the mean is at the target, and for EI above it, too.
    limit = np.zeros_like(means)
    if name == "expected_improvement":
        with np.errstate(divide="ignore"):
            limit = np.log(np.maximum(means - largest, 0.0))
    return np.where((variances + noise == 0.0) & np.isnan(values), limit, values)
