"""Empirical KL divergence (EKL): the part that is minimised, and the value that is reported."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64

from hyperbo.errors import InvalidInputError
from hyperbo.gp.estimate import Estimator, estimate_root
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import cholesky, double_precision, gaussian_nll
from hyperbo.objectives.estimate import MatchedEstimate
from hyperbo.tuning_data import MatchedBlock

# Singular values below this share of the largest are rounding, not support; N tasks give at most N - 1.
RANK_TOLERANCE = 1e-10


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
    estimator: Estimator = "mle",
) -> float:
    r"""EKL of a model on one matched block, on the support of the estimate: the value that is reported.

    Eq. (degenerate), which is Eq. (nondegenerate) when the estimate has full rank:

    .. math:: \tfrac12\left(\mathrm{tr}(\Sigma_p^{-1}) + d_p^\top\Sigma_p^{-1}d_p + \ln|\Sigma_p| - r\right)

    with :math:`\tilde\Sigma = AA^\top`, :math:`\Sigma_p = A^+\Sigma A^{+\top}` and
    :math:`d_p = A^+(\mu-\tilde\mu)`.

    Args:
      mean: the model's prior mean at the block's inputs.
      covariance: its covariance there, noise included.
      y: observations, one column per task.
      estimator: of the covariance.

    Returns:
      The divergence in nats, never negative up to rounding; 0 where the tasks are all equal (rank 0), and so
      for one task alone, which says nothing of a covariance.

    Raises:
      InvalidInputError: as `estimate_root`.
      NumericalError: the model's covariance is not positive definite on the support.

    >>> y = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    >>> bool(abs(ekl(y.mean(1), np.cov(y, bias=True), y)) < 1e-12)
    True
    """
    columns = y.shape[1]
    estimated_mean, root = estimate_root(y, estimator)
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    # Subtracting the mean leaves rounding of the size of y itself, even where all tasks are equal.
    rounding = columns * np.finfo(np.float64).eps * np.linalg.norm(y)
    support = singular > max(RANK_TOLERANCE * singular[0], rounding)
    left, singular = left[:, support], singular[support]
    # A = U D and A+ = D^-1 U^T: U^T Sigma U is factorised, which is better scaled than A+ Sigma A+^T.
    projected = left.T @ covariance @ left
    factor = cholesky(
        0.5 * (projected + projected.T), "the model's covariance, on the support of the estimate,"
    )
    whitened = np.linalg.solve(factor, np.column_stack([np.diag(singular), left.T @ (mean - estimated_mean)]))
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor) / singular))
    return float(0.5 * (np.sum(whitened**2) + log_determinant - len(singular)))


@jax.jit
def _noisy_moments(gp: GaussianProcess, x: Float[Array, "m d"]) -> tuple[Array, Array]:
    return gp.noisy_moments(x)


@double_precision
def mean_ekl(gp: GaussianProcess, blocks: Sequence[MatchedBlock], estimator: Estimator = "mle") -> float:
    """EKL of a model averaged over matched blocks, Eq. (multi-kl) of Eq. (degenerate): what is reported.

    Args:
      gp: model.
      blocks: complete blocks; every y is finite.
      estimator: of the covariances.

    Raises:
      InvalidInputError: there is no block, or one has fewer than two tasks, or a y that is not finite.
      NumericalError: the model's covariance is not positive definite on the support of an estimate.
    """
    if not blocks:
        raise InvalidInputError("no matched block to compare the model with")
    values = []
    for block in blocks:
        # Its divergence would be 0, that of a perfect model, and lower the average.
        if len(block.tasks) < 2:
            raise InvalidInputError(
                f"{len(block.tasks)} tasks have no covariance", where="matched block", fix="leave it out"
            )
        mean, covariance = _noisy_moments(gp, jnp.asarray(block.x))
        values.append(ekl(np.asarray(mean), np.asarray(covariance), block.y, estimator))
    return float(np.mean(values))
