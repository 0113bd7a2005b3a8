"""What pre-training minimises and what it reports: NLL and empirical KL divergence (EKL)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import gaussian_nll
from hyperbo.gp.pytree import pytree

# Singular values below this share of the largest are rounding, not support; N tasks give at most N - 1.
RANK_TOLERANCE = 1e-10


def task_nll(
    gp: GaussianProcess, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Negative log marginal likelihood of one task, Eq. (singleml).

    Args:
      gp: model.
      x: inputs; rows outside the mask are padding.
      y: observations.
      mask: which rows are observations.

    Returns:
      The NLL, and the relative jitter that its Cholesky factor needed.
    """
    mean, covariance = gp.noisy_moments(x)
    return gaussian_nll((y - mean)[:, None], covariance, mask)


@pytree
class MatchedEstimate:
    """Maximum-likelihood Gaussian of one matched block, Eq. (estimate_mean_cov).

    Attributes:
      x: the M shared inputs; rows outside the mask are padding.
      mean: mu~, the mean over tasks.
      root: A' with Sigma~ = A' A'^T: the centred observations over sqrt(N), one column per task.
      mask: which rows are inputs.
    """

    x: Float[Array, "m d"]
    mean: Float[Array, " m"]
    root: Float[Array, "m n"]
    mask: Bool[Array, " m"]


def ekl_minimised(
    gp: GaussianProcess, estimate: MatchedEstimate
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""The part of EKL that depends on the model: what H-EKL minimises.

    .. math:: \tfrac12\left(\mathrm{tr}(\Sigma^{-1}\tilde\Sigma)
              + (\mu-\tilde\mu)^\top\Sigma^{-1}(\mu-\tilde\mu) + \ln|\Sigma| + M \ln 2\pi\right)

    This is Eq. (nondegenerate) without ln|Sigma~| and with the constant M ln(2 pi) in place of -M, so that
    it equals the mean NLL of the block's tasks: with the maximum-likelihood estimate, the two objectives
    of the paper are one on matched data.

    Returns:
      The value, and the relative jitter that its Cholesky factor needed.
    """
    mean, covariance = gp.noisy_moments(estimate.x)
    residuals = jnp.column_stack([estimate.root, mean - estimate.mean])
    return gaussian_nll(residuals, covariance, estimate.mask)


def ekl(
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
    y: Float64[np.ndarray, "m n"],
) -> float:
    r"""EKL of a model on one matched block, on the support of the estimate: the value that is reported.

    Eq. (degenerate), which is Eq. (nondegenerate) when the estimate has full rank:

    .. math:: \tfrac12\left(\mathrm{tr}(\Sigma_p^{-1}) + d_p^\top\Sigma_p^{-1}d_p + \ln|\Sigma_p| - r\right)

    with :math:`\tilde\Sigma = AA^\top`, :math:`\Sigma_p = A^+\Sigma A^{+\top}` and
    :math:`d_p = A^+(\mu-\tilde\mu)`.

    Args:
      mean: the model's prior mean at the block's inputs.
      covariance: its covariance there, noise included.
      y: observations, one column per task; at least two tasks.

    Returns:
      The divergence in nats, never negative up to rounding; 0 where the tasks are all equal (rank 0).

    Raises:
      NumericalError: the model's covariance is not positive definite on the support.

    >>> y = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    >>> bool(abs(ekl(y.mean(1), np.cov(y, bias=True), y)) < 1e-12)
    True
    """
    columns = y.shape[1]
    estimated_mean = y.mean(axis=1)
    left, singular, _ = np.linalg.svd((y - estimated_mean[:, None]) / np.sqrt(columns), full_matrices=False)
    # Subtracting the mean leaves rounding of the size of y itself, even where all tasks are equal.
    rounding = columns * np.finfo(np.float64).eps * np.linalg.norm(y)
    support = singular > max(RANK_TOLERANCE * singular[0], rounding)
    left, singular = left[:, support], singular[support]
    # A = U D and A+ = D^-1 U^T: U^T Sigma U is factorised, which is better scaled than A+ Sigma A+^T.
    projected = left.T @ covariance @ left
    try:
        factor = np.linalg.cholesky(0.5 * (projected + projected.T))
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            "the model's covariance is not positive definite on the support of the estimate"
        ) from error
    whitened = np.linalg.solve(factor, np.column_stack([np.diag(singular), left.T @ (mean - estimated_mean)]))
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor) / singular))
    return float(0.5 * (np.sum(whitened**2) + log_determinant - len(singular)))
