"""Empirical KL divergence (EKL): the part that is minimised, and the value that is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from numpy.typing import ArrayLike

from hyperbo.data.tuning_data import MatchedBlock
from hyperbo.errors import InvalidInputError
from hyperbo.gp.estimate import Estimator, MatchedEstimate, checked_moments, estimate_root
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.moments import prior_moments
from hyperbo.gp.numerics import cholesky, gaussian_nll

# Singular values below this share of the largest are rounding, not support; N tasks give at most N - 1.
RANK_TOLERANCE = 1e-10


def ekl_minimised(
    gp: GaussianProcess, estimate: MatchedEstimate
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""The part of EKL that depends on the model: what H-EKL minimises.

    .. math:: \tfrac12\left(\mathrm{tr}(\Sigma^{-1}\tilde\Sigma)
              + (\mu-\tilde\mu)^\top\Sigma^{-1}(\mu-\tilde\mu) + \ln|\Sigma| + M \ln 2\pi\right)

    This is Eq. 7 (nondegenerate) without ln|Sigma~| and with the constant M ln(2 pi) in place of -M, so that
    it equals the mean NLL of the block's tasks: with the maximum-likelihood estimate, the two objectives
    of the paper are one on matched data.

    Returns:
      The value, and the relative jitter that its Cholesky factor needed.
    """
    mean, covariance = gp.noisy_moments(estimate.x)
    residuals = jnp.column_stack([estimate.root, mean - estimate.mean])
    return gaussian_nll(residuals, covariance, estimate.mask)


class EKLParts(NamedTuple):
    r"""EKL on the support of the estimate, and what it is made of, Eq. 6 (degenerate).

    .. math:: \mathrm{value} = \tfrac12\left(\mathrm{trace} + \mathrm{mahalanobis}
              + \mathrm{log\_determinant} - \mathrm{rank}\right)

    Attributes:
      value: the divergence in nats.
      rank: r of the estimated covariance.
      trace: :math:`\mathrm{tr}(\Sigma_p^{-1})`.
      mahalanobis: :math:`d_p^\top\Sigma_p^{-1}d_p`.
      log_determinant: :math:`\ln|\Sigma_p|`, that of the model's covariance less that of the estimate.
    """

    value: float
    rank: int
    trace: float
    mahalanobis: float
    log_determinant: float


def ekl(mean: ArrayLike, covariance: ArrayLike, y: ArrayLike, estimator: Estimator = "mle") -> float:
    r"""EKL of a model on one matched block, on the support of the estimate: the value that is reported.

    Eq. 6 (degenerate), which is Eq. 7 (nondegenerate) when the estimate has full rank:

    .. math:: \tfrac12\left(\mathrm{tr}(\Sigma_p^{-1}) + d_p^\top\Sigma_p^{-1}d_p + \ln|\Sigma_p| - r\right)

    with :math:`\tilde\Sigma = AA^\top`, :math:`\Sigma_p = A^+\Sigma A^{+\top}` and
    :math:`d_p = A^+(\mu-\tilde\mu)`.

    Args:
      mean: the model's prior mean at the M inputs of the block.
      covariance: its covariance there, noise included.
      y: observations of shape (M, N), one column per task.
      estimator: of the covariance.

    Returns:
      The divergence in nats, never negative up to rounding; 0 where the tasks are all equal (rank 0), and so
      for one task alone, which says nothing of a covariance.

    Raises:
      InvalidInputError: the shapes do not fit each other; a value is not finite; the covariance is not
        symmetric; y has no input or no task; the estimator is unknown, or is `unbiased` for one task.
      NumericalError: the model's covariance is not positive definite on the support.

    >>> y = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    >>> bool(abs(ekl(y.mean(1), np.cov(y, bias=True), y)) < 1e-12)
    True
    """
    return ekl_parts(mean, covariance, y, estimator).value


def ekl_parts(mean: ArrayLike, covariance: ArrayLike, y: ArrayLike, estimator: Estimator = "mle") -> EKLParts:
    """EKL with the rank of the estimate and the terms of the sum; arguments and errors are those of `ekl`.

    >>> y = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    >>> parts = ekl_parts(y.mean(1), np.cov(y, bias=True), y)
    >>> parts.rank, round(parts.trace, 12), round(parts.mahalanobis, 12)
    (2, 2.0, 0.0)
    """
    return _ekl_parts(*checked_moments(mean, covariance, y, "ekl"), estimator)


def _ekl_parts(
    mean: Float64[np.ndarray, " m"],
    covariance: Float64[np.ndarray, "m m"],
    y: Float64[np.ndarray, "m n"],
    estimator: Estimator,
) -> EKLParts:
    estimated_mean, root = estimate_root(y, estimator)
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    # Subtracting the mean leaves rounding of the size of y itself, even where all tasks are equal.
    rounding = y.shape[1] * np.finfo(np.float64).eps * np.linalg.norm(y)
    support = singular > max(RANK_TOLERANCE * singular[0], rounding)
    left, singular = left[:, support], singular[support]
    # A = U D and A+ = D^-1 U^T: U^T Sigma U is factorised, which is better scaled than A+ Sigma A+^T.
    projected = left.T @ covariance @ left
    factor = cholesky(
        0.5 * (projected + projected.T), "the model's covariance, on the support of the estimate,"
    )
    whitened = np.linalg.solve(factor, np.column_stack([np.diag(singular), left.T @ (mean - estimated_mean)]))
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor) / singular))
    squares = whitened**2
    return EKLParts(
        value=float(0.5 * (np.sum(squares) + log_determinant - len(singular))),
        rank=len(singular),
        trace=float(np.sum(squares[:, :-1])),
        mahalanobis=float(np.sum(squares[:, -1])),
        log_determinant=float(log_determinant),
    )


def mean_ekl(gp: GaussianProcess, blocks: Sequence[MatchedBlock], estimator: Estimator = "mle") -> float:
    """EKL of a model averaged over matched blocks, Eq. 8 (multi-kl) of Eq. 6 (degenerate): what is reported.

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
        values.append(_ekl_parts(*prior_moments(gp, block.x, noise=True), block.y, estimator).value)
    return float(np.mean(values))
