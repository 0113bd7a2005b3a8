"""The table prior: a mean and a covariance written down for every candidate of a finite domain."""

# Example: docs/examples/table_prior.py.

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.estimate import Estimator, estimate_root
from hyperbo.gp.numerics import double_precision, plain_array

# Of the noise of a shrunk table: one whose candidates do not vary would be divided by zero.
_SMALLEST_NOISE = 1e-12


@pytree
class TablePrior:
    """A Gaussian over a finite set of candidates, the memory-based model of Proposition 4 (gpexist).

    Attributes:
      mean: at each candidate.
      covariance: of the function values, without noise.
      noise_variance: sigma^2 of the observations.
    """

    mean: Float[Array, " c"]
    covariance: Float[Array, "c c"]
    noise_variance: Float[Array, ""]

    def noisy_moments(self) -> tuple[Float[Array, " c"], Float[Array, "c c"]]:
        """Mean and covariance of observations: the noise stands on the diagonal."""
        identity = jnp.eye(len(self.mean), dtype=self.covariance.dtype)
        return self.mean, self.covariance + self.noise_variance * identity

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """A row of the table."""
        return self.covariance[candidate]

    def unobserved(self, capacity: int) -> CandidatePosterior:
        """The prior over the candidates, ready to be conditioned up to `capacity` times."""
        return CandidatePosterior.unobserved(self, self.mean, jnp.diagonal(self.covariance), capacity)


@double_precision
def estimate_table(y: ArrayLike, noise_variance: float, estimator: Estimator = "mle") -> TablePrior:
    r"""The prior that minimises NLL and EKL on a matched block, Eq. 23 (case_study_mean_cov).

    .. math:: \hat\mu = \tfrac1N Y 1_N, \qquad
              \hat\Sigma = \tfrac1N (Y - \hat\mu 1_N^\top)(Y - \hat\mu 1_N^\top)^\top

    :math:`\hat\Sigma` is a covariance of observations. The noise is taken off its diagonal as far as its
    smallest eigenvalue allows, so that the rest is a covariance: all of it where the estimate has full rank
    and the noise is small, nothing where the tasks are fewer than the candidates. In the first case the noisy
    covariance of the prior is :math:`\hat\Sigma` itself, in the second it is :math:`\hat\Sigma + \sigma^2 I`.

    Args:
      y: observations of shape (M, N): M candidates, one column per task.
      noise_variance: sigma^2 of the observations, which the table alone cannot tell from the function.
      estimator: of the covariance; the paper's is `mle`.

    Raises:
      InvalidInputError: fewer than two tasks, no candidate, a value that is not finite, or noise that is
        not positive.

    >>> prior = estimate_table(np.array([[0.0, 2.0], [1.0, 1.0]]), 0.1, estimator="unbiased")
    >>> prior.mean.tolist(), prior.covariance.tolist()
    ([1.0, 1.0], [[2.0, 0.0], [0.0, 0.0]])
    """
    y = plain_array("y", y, axes=2, where="table prior")
    candidates, tasks = y.shape
    if tasks < 2:
        raise InvalidInputError(
            f"{candidates} candidates on {tasks} tasks have no sample covariance",
            where="table prior",
            fix="give at least two tasks",
        )
    if not 0.0 < noise_variance < np.inf:
        raise InvalidInputError(f"noise_variance = {noise_variance} is not positive", where="table prior")
    mean, root = estimate_root(y, estimator)
    covariance = root @ root.T
    spare = max(float(np.linalg.eigvalsh(covariance)[0]), 0.0)
    covariance -= min(noise_variance, spare) * np.eye(candidates)
    return TablePrior(*map(jnp.asarray, (mean, covariance, np.float64(noise_variance))))


@pytree
class ShrunkTable:
    """A Gaussian over more candidates than tasks: a covariance of low rank plus a variance of each candidate.

    Attributes:
      mean: at each candidate.
      root: A with the covariance A A^T + v I of the function values, without noise.
      own_variance: v.
      noise_variance: sigma^2 of the observations.
    """

    mean: Float[Array, " c"]
    root: Float[Array, "c n"]
    own_variance: Float[Array, ""]
    noise_variance: Float[Array, ""]

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """A row of A A^T + v I."""
        return (self.root @ self.root[candidate]).at[candidate].add(self.own_variance)

    def unobserved(self, capacity: int) -> CandidatePosterior:
        """The prior over the candidates, ready to be conditioned up to `capacity` times."""
        variance = jnp.sum(self.root**2, axis=1) + self.own_variance
        return CandidatePosterior.unobserved(self, self.mean, variance, capacity)


def shrunk_table(
    y: Float[Array, "c n"], candidates: Bool[Array, " c"], tasks: Bool[Array, " n"], noise_share: float
) -> ShrunkTable:
    r"""The table prior, its covariance shrunk so that it is positive definite with few tasks.

    .. math:: (1 - \rho) \hat\Sigma + \rho m I, \qquad
              \rho = \min\{b^2 / d^2, 1\}, \quad m = \tfrac1M \mathrm{tr} \hat\Sigma, \quad
              d^2 = \tfrac1M \|\hat\Sigma - m I\|_F^2, \quad
              b^2 = \tfrac1{M N^2} \sum_{i=1}^N \|z_i z_i^\top - \hat\Sigma\|_F^2

    :math:`\hat\Sigma` is that of Eq. 23 (case_study_mean_cov) and z_i the deviations of task i from the mean.
    Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
    Multivariate Analysis 2004. All norms come from the N x N matrix of products of tasks.

    Args:
      y: values of M candidates, one column per task; finite where they are padding, too.
      candidates: which rows are candidates; the others are padding.
      tasks: which columns are tasks; the others are padding.
      noise_share: noise variance as a share of m.
    """
    count, inputs = jnp.sum(tasks), jnp.sum(candidates)
    mean = jnp.sum(jnp.where(tasks, y, 0.0), axis=1) / count
    root = jnp.where(candidates[:, None] & tasks, y - mean[:, None], 0.0) / jnp.sqrt(count)
    products = root.T @ root
    of_tasks, squared_norm = jnp.diagonal(products), jnp.sum(products**2)
    variance = jnp.sum(of_tasks) / inputs
    dispersion = squared_norm / inputs - variance**2
    error = (jnp.sum(of_tasks**2) - squared_norm / count) / inputs
    # Where the sample covariance is a multiple of I already, its shrinkage changes nothing.
    share = jnp.where(
        dispersion > 0.0, jnp.minimum(error / jnp.where(dispersion > 0.0, dispersion, 1.0), 1.0), 1.0
    )
    noise_variance = jnp.maximum(noise_share * variance, _SMALLEST_NOISE)
    return ShrunkTable(mean, jnp.sqrt(1.0 - share) * root, share * variance, noise_variance)
