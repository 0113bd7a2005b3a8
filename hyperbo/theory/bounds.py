"""Theorem posterior_bound: how far the posterior of a prior estimated from N training functions is off.

The prior is the table of Proposition gpexist, estimated by maximum likelihood.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hyperbo.errors import InvalidInputError


class PosteriorBound(NamedTuple):
    """What holds with probability 1 - delta at one input in one iteration, Theorem posterior_bound.

    Attributes:
      a: the means differ by less than `a` standard deviations of an observation under the ground truth.
      b: from which the next two follow.
      lower: 1 - 2 sqrt(b), below the ratio of the corrected predictive variance to that of the ground truth.
      upper: 1 + 2 sqrt(b) + 2 b, above it.
    """

    a: float
    b: float
    lower: float
    upper: float


def variance_bias(training_functions: int, iteration: int) -> float:
    """(N - t) / N: the expected predictive variance over that of the ground truth, Theorem posterior_bound.

    Args:
      training_functions: N.
      iteration: t, one more than the number of observations of the test function.

    >>> variance_bias(10, 1), variance_bias(10, 5)
    (0.9, 0.5)
    """
    _check(training_functions, iteration)
    return (training_functions - iteration) / training_functions


def mean_error_variance(training_functions: int, iteration: int, surprise: float) -> float:
    r"""Variance of the pre-trained posterior mean, in units of the ground truth's predictive variance.

    .. math:: \mathrm{Var}[\hat\mu_{t-1}(x) \mid y]
              = \frac{1 + q - 2/N}{N - t - 1} \; k^*_{t-1}\circ\sigma_*^2(x)

    From the proof of Lemma conditional_multivariate_gaussian; its expectation over y has q = t - 1.

    Args:
      training_functions: N.
      iteration: t, one more than the number of observations of the test function.
      surprise: q, the squared Mahalanobis distance of the observations from their ground-truth prior mean.
    """
    _check(training_functions, iteration)
    return (1.0 + surprise - 2.0 / training_functions) / (training_functions - iteration - 1)


def posterior_bound(training_functions: int, iteration: int, delta: float) -> PosteriorBound:
    r"""How far a pre-trained posterior is from that of the ground truth, Theorem posterior_bound.

    .. math:: a^2 = \frac{4\left(t + 2\sqrt{(t-1)\ln\frac4\delta} + 2\ln\frac4\delta - \frac2N\right)}
                         {(N-t-1)\,\delta}, \qquad b = \frac{1}{N-t}\ln\frac4\delta

    Args:
      training_functions: N, more than t + 1.
      iteration: t, one more than the number of observations of the test function.
      delta: probability with which the bound may fail.

    >>> bound = posterior_bound(1000, 5, 0.1)
    >>> round(bound.a, 3), round(bound.lower, 3), round(bound.upper, 3)
    (0.898, 0.878, 1.129)
    """
    _check(training_functions, iteration)
    check_probability(delta)
    log = math.log(4.0 / delta)
    total = iteration + 2.0 * math.sqrt((iteration - 1) * log) + 2.0 * log - 2.0 / training_functions
    a = math.sqrt(4.0 * total / ((training_functions - iteration - 1) * delta))
    b = log / (training_functions - iteration)
    return PosteriorBound(a, b, 1.0 - 2.0 * math.sqrt(b), 1.0 + 2.0 * math.sqrt(b) + 2.0 * b)


def _check(training_functions: int, iteration: int) -> None:
    if iteration < 1 or training_functions <= iteration + 1:
        raise InvalidInputError(
            f"N = {training_functions} training functions and iteration t = {iteration}",
            where="Theorem posterior_bound",
            fix="it asks for t >= 1 and N > t + 1",
        )


def check_probability(delta: float) -> None:
    """Refuse a delta that is no probability between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise InvalidInputError(f"delta = {delta} is no probability between 0 and 1", where="bound")
