"""The paper's bounds, for the table prior of Proposition 4 (gpexist), estimated from N training functions.

Theorem 5 (posterior_bound) says how far the posterior is from that of the ground truth; the regret theorems
say how much Bayesian optimization with it loses. The functions return what the theorems state. Four steps in
the proofs of the regret theorems do not hold:

- x*, the maximiser of the random function, is treated as a fixed input. So the bounds do not depend on the
  number of inputs, and fail for many independent ones: with 10^6 inputs of variance 1, T = 1 and delta = 0.9
  the regret of GP-UCB exceeds its bound with probability 0.95.
- Lemma 15 (app_best_sample_diff) treats the iteration of the largest observation as a fixed one. So it does
  not depend on T: with f larger by 2 zeta sigma* in one of 1000 iterations and equal in all others, and
  delta = 0.9, it fails with probability 0.98.
- The same lemma has 2 zeta sigma* where the theorems go on with zeta sigma*.
- The last step for Theorem 18 (regret_ucb_alternative) leaves 2 beta sigma^ of which the statement has one
  half.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hyperbo.errors import InvalidInputError


class PosteriorBound(NamedTuple):
    """What holds with probability 1 - delta at one input in one iteration, Theorem 5 (posterior_bound).

    Attributes:
      a: the means differ by less than `a` standard deviations of an observation under the ground truth.
      b: determines the next two.
      lower: 1 - 2 sqrt(b), below the ratio of the corrected predictive variance to that of the ground truth.
      upper: 1 + 2 sqrt(b) + 2 b, above it.
    """

    a: float
    b: float
    lower: float
    upper: float


def variance_bias(training_functions: int, iteration: int) -> float:
    """(N - t) / N: expected predictive variance over that of the truth, Theorem 5 (posterior_bound).

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

    From the proof of Lemma 10 (conditional_multivariate_gaussian); its expectation over y has q = t - 1.

    Args:
      training_functions: N.
      iteration: t, one more than the number of observations of the test function.
      surprise: q, the squared Mahalanobis distance of the observations from their ground-truth prior mean.
    """
    _check(training_functions, iteration)
    return (1.0 + surprise - 2.0 / training_functions) / (training_functions - iteration - 1)


def posterior_bound(training_functions: int, iteration: int, delta: float) -> PosteriorBound:
    r"""How far a pre-trained posterior is from that of the ground truth, Theorem 5 (posterior_bound).

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
            where="Theorem 5 (posterior_bound)",
            fix="it asks for t >= 1 and N > t + 1",
        )


def check_probability(delta: float) -> None:
    """Refuse a delta that is no probability between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise InvalidInputError(f"delta = {delta} is no probability between 0 and 1", where="bound")


class RegretSetting(NamedTuple):
    """The sizes and the probability that the regret bounds depend on.

    Attributes:
      training_functions: N, more than T + 4 ln(12 / delta).
      iterations: T.
      delta: probability with which the bound may fail.
    """

    training_functions: int
    iterations: int
    delta: float


def ucb_coefficient(setting: RegretSetting) -> float:
    r"""The coefficient beta of GP-UCB in Theorems 16 (regret_ucb) and 18 (regret_ucb_alternative).

    .. math:: \beta = (a + \zeta) \sqrt{\frac{N}{(N - T)(1 - 2\sqrt b)}}

    with a and b of Theorem 5 (posterior_bound) at t = T and delta / 3, and zeta = sqrt(2 ln(3 / delta)).
    """
    bound, zeta, _ = _regret_parts(setting)
    spare = (setting.training_functions - setting.iterations) * bound.lower
    return (bound.a + zeta) * math.sqrt(setting.training_functions / spare)


def ucb_regret_bound(
    setting: RegretSetting, largest_variance: float, noise_variance: float, information_gain: float
) -> float:
    r"""Simple regret of GP-UCB, Eq. 21 (acfun-ucb), with `ucb_coefficient`: Theorem 16 (regret_ucb).

    .. math:: (a + \zeta)(1 + s) \sqrt{\frac{2 c \rho_T}{T \ln(1 + c \sigma_*^{-2})} + \sigma_*^2}
              + \zeta \sigma_* \left(1 - \frac{\sigma_*}{\sqrt{c + \sigma_*^2}}\right),
              \quad s = \sqrt{\frac{1 + 2\sqrt b + 2b}{1 - 2\sqrt b}}

    Args:
      setting: N, T and delta.
      largest_variance: c, at least the ground truth's variance at any input.
      noise_variance: sigma*^2.
      information_gain: rho_T of the ground truth; see `hyperbo.theory.greedy_information_gain`.
    """
    bound, zeta, ratio = _regret_parts(setting)
    _check_quantities(largest_variance, noise_variance, information_gain)
    variance = _smallest_variance(setting, largest_variance, noise_variance, information_gain)
    first = (bound.a + zeta) * (1.0 + ratio) * math.sqrt(variance + noise_variance)
    return first + _noise_term(zeta, largest_variance, noise_variance, 1.0)


def pi_regret_bound(
    setting: RegretSetting,
    largest_variance: float,
    noise_variance: float,
    information_gain: float,
    standardised_target: float,
) -> float:
    r"""Simple regret of max-value PI, Eq. 22 (acfun-pi), with a target >= max f: Theorem 17 (regret_pi).

    .. math:: \eta \sqrt{\frac{2 c \rho_T}{T \ln(1 + c \sigma_*^{-2})} + \sigma_*^2}
              + \zeta \sigma_* \left(1 - \frac{\sigma_*}{2 \sqrt{c + \sigma_*^2}}\right),
              \quad \eta = s (q + a) + a + \zeta

    The statement has the pre-trained kernel in rho_T; its proof and Theorem 6 (regret) have the ground
    truth's.

    Args:
      setting: N, T and delta.
      largest_variance: c, at least the ground truth's variance at any input.
      noise_variance: sigma*^2.
      information_gain: rho_T of the ground truth.
      standardised_target: q, the target less the ground truth's posterior mean at x*, over the predictive
        standard deviation there, in the iteration whose input had the smallest posterior variance.
    """
    bound, zeta, ratio = _regret_parts(setting)
    _check_quantities(largest_variance, noise_variance, information_gain)
    variance = _smallest_variance(setting, largest_variance, noise_variance, information_gain)
    eta = ratio * (standardised_target + bound.a) + bound.a + zeta
    noise_term = _noise_term(zeta, largest_variance, noise_variance, 0.5)
    return eta * math.sqrt(variance + noise_variance) + noise_term


def alternative_regret_bound(
    setting: RegretSetting,
    largest_variance: float,
    noise_variance: float,
    estimated_noise_variance: float,
    estimated_information_gain: float,
) -> float:
    r"""Simple regret of GP-UCB without noise, Eq. 33 (alternative_ucb): Theorem 18 (regret_ucb_alternative).

    .. math:: 2 \beta \sqrt{\frac{2 c \rho_T}{T \ln(1 + c \hat\sigma^{-2})}} + \beta \hat\sigma
              + \zeta \sigma_* \left(1 - \frac{\sigma_*}{\sqrt{c + \sigma_*^2}}\right)

    Args:
      setting: N, T and delta.
      largest_variance: c, at least the variance at any input of the ground truth and the pre-trained model.
      noise_variance: sigma*^2, of the ground truth.
      estimated_noise_variance: sigma^^2, of the pre-trained model.
      estimated_information_gain: rho_T of the pre-trained model.
    """
    _, zeta, _ = _regret_parts(setting)
    _check_quantities(
        largest_variance, min(noise_variance, estimated_noise_variance), estimated_information_gain
    )
    beta = ucb_coefficient(setting)
    variance = _smallest_variance(
        setting, largest_variance, estimated_noise_variance, estimated_information_gain
    )
    first = 2.0 * beta * math.sqrt(variance) + beta * math.sqrt(estimated_noise_variance)
    return first + _noise_term(zeta, largest_variance, noise_variance, 1.0)


def regret_rate(setting: RegretSetting, noise_variance: float, information_gain: float) -> float:
    r"""How the bounds grow, up to constants: Theorem 6 (regret), Eq. 24 (regret).

    .. math:: \left(\sqrt{\frac{T}{N - T - 1}} + \sqrt{\ln\frac1\delta}\right)
              \left(\sqrt{\rho_T / T} + \sigma_*\right)
    """
    _regret_parts(setting)
    _check_quantities(1.0, noise_variance, information_gain)
    functions, iterations, delta = setting
    estimation = math.sqrt(iterations / (functions - iterations - 1)) + math.sqrt(math.log(1.0 / delta))
    return estimation * (math.sqrt(information_gain / iterations) + math.sqrt(noise_variance))


def _regret_parts(setting: RegretSetting) -> tuple[PosteriorBound, float, float]:
    """The posterior's bound at delta / 3, zeta and s."""
    functions, iterations, delta = setting
    check_probability(delta)
    if iterations < 1 or functions <= iterations + 4.0 * math.log(12.0 / delta):
        raise InvalidInputError(
            f"N = {functions} training functions are not more than T + 4 ln(12 / delta) = "
            f"{iterations + 4.0 * math.log(12.0 / delta):.1f} with T = {iterations} and delta = {delta}",
            where="regret bound",
        )
    bound = posterior_bound(functions, iterations, delta / 3.0)
    return bound, math.sqrt(2.0 * math.log(3.0 / delta)), math.sqrt(bound.upper / bound.lower)


def _smallest_variance(setting: RegretSetting, largest: float, noise: float, information: float) -> float:
    """What the smallest posterior variance of the T chosen inputs cannot exceed, by Lemma 13 (rho)."""
    return 2.0 * largest * information / (setting.iterations * math.log1p(largest / noise))


def _noise_term(zeta: float, largest: float, noise: float, share: float) -> float:
    return zeta * math.sqrt(noise) * (1.0 - share * math.sqrt(noise / (largest + noise)))


def _check_quantities(largest_variance: float, noise_variance: float, information_gain: float) -> None:
    if not (0.0 < largest_variance < math.inf and 0.0 < noise_variance < math.inf):
        raise InvalidInputError(
            f"variance {largest_variance} and noise variance {noise_variance}: not both positive",
            where="regret bound",
        )
    if not 0.0 <= information_gain < math.inf:
        raise InvalidInputError(f"information gain {information_gain} is negative", where="regret bound")
