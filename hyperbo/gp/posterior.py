"""Posteriors by conditioning only: the prior stays fixed, Eqs. (post_mu_approx) and (post_k_approx)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import factorise
from hyperbo.gp.pytree import pytree


@pytree
class FinitePosterior:
    """Posterior over a finite set of candidates, grown one observation at a time in O(tC).

    Row s of `rows` is row s of L^-1 K(observed, candidates), L the Cholesky factor of the noisy covariance
    of the observations: appending one observation appends one row to the factor, so no matrix is
    factorised again.

    Attributes:
      covariance: prior covariance of the candidates, without noise.
      rows: one row per observation so far, zero below.
      mean: posterior mean at each candidate.
      variance: posterior variance of the function at each candidate.
      noise_variance: sigma^2 of the observations.
    """

    covariance: Float[Array, "c c"]
    rows: Float[Array, "t c"]
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]
    noise_variance: Float[Array, ""]

    def observe(
        self, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> FinitePosterior:
        """Condition on one more observation.

        Args:
          step: number of observations so far.
          candidate: which candidate was observed; it may have been observed before.
          y: its noisy value.
        """
        explained = self.rows[:, candidate] @ self.rows
        # Noise keeps the pivot positive; a repeated candidate only divides by the noise that is there.
        pivot = jnp.sqrt(self.variance[candidate] + self.noise_variance)
        row = (self.covariance[candidate] - explained) / pivot
        innovation = (y - self.mean[candidate]) / pivot
        return FinitePosterior(
            self.covariance,
            self.rows.at[step].set(row),
            self.mean + innovation * row,
            jnp.maximum(self.variance - row * row, 0.0),
            self.noise_variance,
        )


def finite_prior(gp: GaussianProcess, candidates: Float[Array, "c d"], capacity: int) -> FinitePosterior:
    """The prior over candidates, ready to be conditioned up to `capacity` times."""
    mean, covariance = gp.moments(candidates)
    rows = jnp.zeros((capacity, candidates.shape[0]), covariance.dtype)
    return FinitePosterior(covariance, rows, mean, jnp.diagonal(covariance), gp.noise_variance)


def predict(
    gp: GaussianProcess,
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    mask: Bool[Array, " n"],
    at: Float[Array, "c d"],
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Posterior mean and variance of the function given observations; rows outside the mask are ignored.

    Args:
      gp: prior.
      x: observed inputs.
      y: observed values.
      mask: which rows are observations.
      at: inputs to predict at.

    Returns:
      Mean and variance without noise at each input.
    """
    features, at_features = gp.features(x), gp.features(at)
    identity = jnp.eye(x.shape[0], dtype=y.dtype)
    noisy = gp.kernel(features, features) + gp.noise_variance * identity
    factorisation = factorise(noisy, mask)
    cross = jnp.where(mask[:, None], gp.kernel(features, at_features), 0.0)
    residual = jnp.where(mask, y - gp.mean(features), 0.0)
    whitened = factorisation.inverse_factor @ jnp.column_stack([residual, cross])
    mean = gp.mean(at_features) + whitened[:, 0] @ whitened[:, 1:]
    variance = gp.kernel.diagonal(at_features) - jnp.sum(whitened[:, 1:] ** 2, axis=0)
    return mean, jnp.maximum(variance, 0.0)
