"""Gaussians over a few inputs, in plain NumPy: posteriors and losses of the synthetic studies."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int

from hyperbo.gp.numerics import cholesky


def condition(
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
    noise_variance: float,
    observed: Int[np.ndarray, " t"],
    y: Float64[np.ndarray, " t"],
) -> tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]:
    """Posterior mean and variance of the function, Eqs. (post_mu_star) and (post_k_star).

    Args:
      mean: prior mean at all inputs.
      covariance: of the function there, without noise.
      noise_variance: sigma^2; 0 where the function itself is observed.
      observed: which inputs.
      y: what was observed.

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
    """NLL averaged over functions, Eq. (nll).

    Args:
      mean: prior mean at the inputs.
      noisy_covariance: of observations there.
      functions: one per row.

    Raises:
      NumericalError: the covariance is not positive definite.
    """
    factor = cholesky(noisy_covariance, "the covariance of the observations")
    white = np.linalg.solve(factor, (functions - mean).T)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
    constant = len(mean) * np.log(2.0 * np.pi)
    return float(0.5 * (np.sum(white**2) / len(functions) + log_determinant + constant))
