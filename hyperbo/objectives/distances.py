"""Extensions beyond the paper's objectives: other distances between the model and a matched block's Gaussian.

They need no support, so an estimate of deficient rank is like any other; the paper's discussion names other
distances as future work. The square is minimised, because it is smooth at 0; the root is reported.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from hyperbo.gp.estimate import Estimator, MatchedEstimate, checked_moments, estimate_root
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import cholesky

# Eigenvalues below this share of the largest are rounding: the gradient of their square root is left out.
_EIGENVALUE_TOLERANCE = 1e-14


def _masked_moments(gp: GaussianProcess, estimate: MatchedEstimate) -> tuple[Array, Array]:
    """Differences mu - mu~, and Sigma, both exactly 0 on padding."""
    mean, covariance = gp.noisy_moments(estimate.x)
    inside = estimate.mask[:, None] & estimate.mask[None, :]
    return jnp.where(estimate.mask, mean - estimate.mean, 0.0), jnp.where(inside, covariance, 0.0)


def squared_euclidean(gp: GaussianProcess, estimate: MatchedEstimate) -> Float[Array, ""]:
    """Squared Euclidean distance of the moments, |mu - mu~|^2 + |Sigma - Sigma~|_F^2: what is minimised."""
    difference, covariance = _masked_moments(gp, estimate)
    excess = covariance - estimate.root @ estimate.root.T
    return difference @ difference + jnp.sum(excess * excess)


def euclidean(mean: ArrayLike, covariance: ArrayLike, y: ArrayLike, estimator: Estimator = "mle") -> float:
    """Euclidean distance of the model's moments from a block's estimate: the value that is reported.

    Args:
      mean: the model's prior mean at the M inputs of the block.
      covariance: its covariance there, noise included, of shape (M, M).
      y: observations of shape (M, N), one column per task.
      estimator: of the covariance.

    Raises:
      InvalidInputError: the shapes do not fit each other, a value is not finite, the covariance is not
        symmetric, y has no input or no task, or no such estimate.
    """
    mean, covariance, y = checked_moments(mean, covariance, y, "euclidean")
    estimated_mean, root = estimate_root(y, estimator)
    return float(np.hypot(np.linalg.norm(mean - estimated_mean), np.linalg.norm(covariance - root @ root.T)))


@custom_vmap
def _eigh_once(matrix: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    vectors, values = lax.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors


@_eigh_once.def_vmap
def _eigh_batch(
    axis_size: int, in_batched: list[bool], matrices: Float[Array, "b n n"]
) -> tuple[tuple[Float[Array, "b n"], Float[Array, "b n n"]], tuple[bool, bool]]:
    # One LAPACK call at a time: docs/decisions/cpu-factorisation.md.
    return lax.map(_eigh_once, matrices), (True, True)


@jax.custom_vjp
def trace_of_square_root(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """tr(S^(1/2)) of a symmetric positive semi-definite S.

    Its gradient is S^(-1/2) / 2 on the support of S, and 0 off it: there the square root has no derivative,
    and a matrix that keeps its null space does not move.
    """
    return _trace_of_square_root_forward(matrix)[0]


def _trace_of_square_root_forward(matrix: Float[Array, "n n"]) -> tuple[Array, tuple[Array, Array]]:
    values, vectors = _eigh_once(0.5 * (matrix + matrix.T))
    support = values > _EIGENVALUE_TOLERANCE * jnp.max(values)
    roots = jnp.sqrt(jnp.where(support, values, 0.0))
    inverse_roots = jnp.where(support, 1.0 / jnp.where(support, roots, 1.0), 0.0)
    return jnp.sum(roots), (inverse_roots, vectors)


def _trace_of_square_root_backward(saved: tuple[Array, Array], cotangent: Array) -> tuple[Array]:
    inverse_roots, vectors = saved
    return (0.5 * cotangent * (vectors * inverse_roots) @ vectors.T,)


trace_of_square_root.defvjp(_trace_of_square_root_forward, _trace_of_square_root_backward)


def squared_wasserstein(gp: GaussianProcess, estimate: MatchedEstimate) -> Float[Array, ""]:
    r"""Squared Wasserstein-2 distance of the two Gaussians: what is minimised.

    .. math:: |\mu-\tilde\mu|^2 + \mathrm{tr}\,\Sigma + \mathrm{tr}\,\tilde\Sigma
              - 2\,\mathrm{tr}\left((A^\top \Sigma A)^{1/2}\right), \qquad \tilde\Sigma = A A^\top

    The last trace is that of (Sigma~^(1/2) Sigma Sigma~^(1/2))^(1/2): both have the same eigenvalues, and
    this matrix is only as large as there are tasks.
    """
    difference, covariance = _masked_moments(gp, estimate)
    traces = jnp.trace(covariance) + jnp.sum(estimate.root * estimate.root)
    overlap = trace_of_square_root(estimate.root.T @ covariance @ estimate.root)
    return difference @ difference + traces - 2.0 * overlap


def wasserstein(mean: ArrayLike, covariance: ArrayLike, y: ArrayLike, estimator: Estimator = "mle") -> float:
    """Wasserstein-2 distance of the model from a block's estimate: the value that is reported.

    The overlap is the sum of the singular values of L^T A, with Sigma = L L^T. The arguments are those of
    `euclidean`.

    Raises:
      InvalidInputError: as in `euclidean`.
      NumericalError: the model's covariance is not positive definite.
    """
    mean, covariance, y = checked_moments(mean, covariance, y, "wasserstein")
    estimated_mean, root = estimate_root(y, estimator)
    factor = cholesky(covariance, "the model's covariance")
    overlap = np.linalg.svd(factor.T @ root, compute_uv=False).sum()
    squared = np.sum((mean - estimated_mean) ** 2) + np.trace(covariance) + np.sum(root**2) - 2.0 * overlap
    return float(np.sqrt(max(squared, 0.0)))
