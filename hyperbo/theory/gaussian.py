"""Gaussians over a few inputs, in plain NumPy: posteriors, losses, and information gain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import cholesky


def condition(
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
    noise_variance: float,
    observed: Int[np.ndarray, " t"],
    y: Float64[np.ndarray, " t"],
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]:
    """Posterior mean and variance of the function, Eqs. 15 (post_mu_star) and 16 (post_k_star).

    The covariance is that of the function; the noise variance is 0 where the function itself is observed.

    Raises:
      NumericalError: the covariance of the observations is not positive definite.
    """
    noisy = covariance[np.ix_(observed, observed)] + noise_variance * np.eye(len(y))
    residuals = np.column_stack([covariance[observed], y - mean[observed]])
    white = np.linalg.solve(cholesky(noisy, "the covariance of the observations"), residuals)
    cross, residual = white[:, :-1], white[:, -1]
    return mean + residual @ cross, np.maximum(np.diag(covariance) - np.sum(cross**2, axis=0), 0.0)


def mean_nll(
    mean: Float64[np.ndarray, " m"],
    noisy_covariance: Float64[np.ndarray, "m m"],
    functions: Float64[np.ndarray, "n m"],
) -> float:
    """NLL averaged over functions, one per row, Eq. 13 (nll).

    Raises:
      NumericalError: the covariance of the observations is not positive definite.
    """
    factor = cholesky(noisy_covariance, "the covariance of the observations")
    white = np.linalg.solve(factor, (functions - mean).T)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
    constant = len(mean) * np.log(2.0 * np.pi)
    return float(0.5 * (np.sum(white**2) / len(functions) + log_determinant + constant))


class InformationGain(NamedTuple):
    """A set of inputs of large information gain.

    Attributes:
      chosen: the inputs, in the order in which they were chosen.
      gain: their information gain, in nats: at most rho_T.
      upper_bound: gain / (1 - 1/e): at least rho_T, since information gain is submodular (Nemhauser et al.,
        1978).
    """

    chosen: Int[np.ndarray, " t"]
    gain: float
    upper_bound: float


def information_gain(covariance: Float64[np.ndarray, "t t"], noise_variance: float) -> float:
    r"""Mutual information of function values and their noisy observations, in nats.

    .. math:: \tfrac12 \ln\left|I + \sigma^{-2} k(A)\right|

    Args:
      covariance: k(A), of the function at the observed inputs, without noise; an input may be repeated.
      noise_variance: sigma^2.

    Raises:
      InvalidInputError: the noise variance is not positive.
      NumericalError: the matrix is no covariance.

    >>> round(information_gain(np.eye(3), 0.5) / math.log(3.0), 12)
    1.5
    """
    _check_noise(noise_variance)
    sign, log_determinant = np.linalg.slogdet(np.eye(len(covariance)) + covariance / noise_variance)
    if not sign > 0.0:
        raise NumericalError("I + k(A) / sigma^2 has no positive determinant: k(A) is no covariance")
    return 0.5 * float(log_determinant)


def greedy_information_gain(
    covariance: Float64[np.ndarray, "m m"], noise_variance: float, count: int, *, repeats: bool
) -> InformationGain:
    """Bound rho_T, the largest information gain of T inputs of a finite set, from both sides.

    Each step takes the input of largest posterior variance, the first of several; by Lemma 13 (rho) it adds
    ln(1 + variance / sigma^2) / 2.

    Args:
      covariance: k, of the function at all inputs, without noise.
      noise_variance: sigma^2.
      count: T.
      repeats: whether an input may be observed more than once, as in the offline protocol of PD1; rho_T is
        then that of multisets, which bounds the regret of such runs.

    Raises:
      InvalidInputError: the noise variance is not positive, or there are fewer than `count` inputs.

    >>> greedy_information_gain(np.diag([1.0, 3.0, 2.0]), 1.0, 2, repeats=False).chosen.tolist()
    [1, 2]
    """
    _check_noise(noise_variance)
    inputs = len(covariance)
    if count < 1 or (count > inputs and not repeats):
        fix = "give a count of at least 1" if repeats else f"give a count from 1 to {inputs}"
        raise InvalidInputError(f"cannot choose {count} of {inputs} inputs", fix=fix)
    variance = np.diag(covariance).copy()
    rows = np.zeros((count, inputs))
    chosen = np.zeros(count, np.int64)
    gain = 0.0
    for step in range(count):
        candidates = variance.copy()
        if not repeats:
            candidates[chosen[:step]] = -np.inf
        chosen[step] = place = int(np.argmax(candidates))
        gain += 0.5 * math.log1p(variance[place] / noise_variance)
        explained = rows[:step, place] @ rows[:step]
        rows[step] = (covariance[place] - explained) / math.sqrt(variance[place] + noise_variance)
        variance = np.maximum(variance - rows[step] ** 2, 0.0)
    return InformationGain(chosen, gain, gain / (1.0 - math.exp(-1.0)))


def _check_noise(noise_variance: float) -> None:
    if not 0.0 < noise_variance < math.inf:
        raise InvalidInputError(f"noise variance {noise_variance} is not positive", where="information gain")
