"""Posteriors by conditioning only: the prior stays fixed, Eqs. 17 (post_mu_approx) and 18 (post_k_approx)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import FIRST_JITTER, Factorisation, factorise


def predict(
    gp: GaussianProcess,
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    mask: Bool[Array, " n"],
    at: Float[Array, "c d"],
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Posterior mean and variance of the function given observations; rows outside the mask are ignored.

    For more than one set of inputs, more observations, covariances or samples, see `condition`.

    Args:
      gp: prior.
      x: observed inputs.
      y: observed values.
      mask: which rows are observations.
      at: inputs to predict at.

    Returns:
      Mean and variance without noise at each input.
    """
    features, factorisation, residual = _factorise_observations(gp, x, y, mask)
    at_features = gp.features(at)
    cross = jnp.where(mask[:, None], gp.kernel(features, at_features), 0.0)
    whitened = factorisation.inverse_factor @ jnp.column_stack([residual, cross])
    mean = gp.mean(at_features) + whitened[:, 0] @ whitened[:, 1:]
    variance = gp.kernel.diagonal(at_features) - jnp.sum(whitened[:, 1:] ** 2, axis=0)
    return mean, jnp.maximum(variance, 0.0)


@pytree
class Posterior:
    """Posterior at any input, grown one observation at a time in O(t^2).

    Attributes:
      gp: prior.
      features: of the observed inputs; rows outside the mask are room for more.
      mask: which rows are observations.
      inverse_factor: L^-1, L the Cholesky factor of the observations' noisy covariance; rows and columns
        outside the mask are those of the identity.
      whitened: L^-1 (y - mu), zero outside the mask.
      jitter: what the factorisation added to the diagonal, relative to its mean.
    """

    gp: GaussianProcess
    features: Float[Array, "t e"]
    mask: Bool[Array, " t"]
    inverse_factor: Float[Array, "t t"]
    whitened: Float[Array, " t"]
    jitter: Float[Array, ""]

    def mean(self, at: Float[Array, "c d"]) -> Float[Array, " c"]:
        """Posterior mean, Eq. 17 (post_mu_approx)."""
        at_features = self.gp.features(at)
        return self.gp.mean(at_features) + self.whitened @ self._whitened_cross(at_features)

    def variance(self, at: Float[Array, "c d"]) -> Float[Array, " c"]:
        """Posterior variance of the function, without noise: the diagonal of Eq. 18 (post_k_approx)."""
        at_features = self.gp.features(at)
        explained = jnp.sum(self._whitened_cross(at_features) ** 2, axis=0)
        return jnp.maximum(self.gp.kernel.diagonal(at_features) - explained, 0.0)

    def noisy_variance(self, at: Float[Array, "c d"]) -> Float[Array, " c"]:
        """Posterior variance of an observation: that of the function plus the noise."""
        return self.variance(at) + self.gp.noise_variance

    def covariance(self, at: Float[Array, "c d"]) -> Float[Array, "c c"]:
        """Posterior covariance of the function, without noise, Eq. 18 (post_k_approx)."""
        at_features = self.gp.features(at)
        whitened = self._whitened_cross(at_features)
        return self.gp.kernel(at_features, at_features) - whitened.T @ whitened

    def sample(self, key: PRNGKeyArray, count: int, at: Float[Array, "c d"]) -> Float[Array, "count c"]:
        """Draw functions from the posterior, by their values at some inputs.

        Args:
          key: random key.
          count: number of functions.
          at: inputs; equal ones get values equal to about 1e-5 of the prior's standard deviation.

        Returns:
          One row per function, without observation noise.
        """
        covariance = self.covariance(at)
        # Where the function is known, the difference of two covariances is only rounding, of the size of the
        # prior. The smallest number is added, too, so that a prior that is zero everywhere has a factor.
        scale = jnp.mean(self.gp.kernel.diagonal(self.gp.features(at)))
        rounding = FIRST_JITTER * scale + jnp.finfo(covariance.dtype).tiny
        covariance = covariance + rounding * jnp.eye(len(at), dtype=covariance.dtype)
        factor = factorise(covariance, jnp.ones(len(at), bool)).factor
        return self.mean(at) + jax.random.normal(key, (count, len(at)), covariance.dtype) @ factor.T

    def observe(self, x: Float[Array, " d"], y: Float[Array, ""]) -> Posterior:
        """Condition on one more observation: one row is appended to the inverse factor, in O(t^2).

        Args:
          x: observed input; it may have been observed before.
          y: its noisy value.

        Returns:
          The posterior in the same shapes; all its predictions are NaN where there was no room left.
        """
        row = jnp.argmin(self.mask)
        at_features = self.gp.features(x[None])
        cross = self._whitened_cross(at_features)[:, 0]
        variance = jnp.maximum(self.gp.kernel.diagonal(at_features)[0] - cross @ cross, 0.0)
        pivot = jnp.where(self.mask[row], jnp.nan, jnp.sqrt(variance + self.gp.noise_variance))
        innovation = y - self.gp.mean(at_features)[0] - cross @ self.whitened
        new_row = (-(cross @ self.inverse_factor)).at[row].set(1.0) / pivot
        return Posterior(
            self.gp,
            self.features.at[row].set(at_features[0]),
            self.mask.at[row].set(True),
            self.inverse_factor.at[row].set(new_row),
            self.whitened.at[row].set(innovation / pivot),
            self.jitter,
        )

    def _whitened_cross(self, at_features: Float[Array, "c e"]) -> Float[Array, "t c"]:
        """L^-1 K(observed, at)."""
        cross = self.gp.kernel(self.features, at_features)
        return self.inverse_factor @ jnp.where(self.mask[:, None], cross, 0.0)


def condition(
    gp: GaussianProcess, x: Float[Array, "t d"], y: Float[Array, " t"], mask: Bool[Array, " t"]
) -> Posterior:
    """The posterior given observations, with room to observe more in the rows outside the mask.

    Args:
      gp: prior.
      x: observed inputs.
      y: observed values.
      mask: which rows are observations; the others are ignored.
    """
    features, factorisation, residual = _factorise_observations(gp, x, y, mask)
    inverse_factor = factorisation.inverse_factor
    return Posterior(gp, features, mask, inverse_factor, inverse_factor @ residual, factorisation.jitter)


def _factorise_observations(
    gp: GaussianProcess, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
) -> tuple[Float[Array, "n e"], Factorisation, Float[Array, " n"]]:
    """Features of the inputs, factor of their noisy covariance, and y less the prior mean."""
    features = gp.features(x)
    identity = jnp.eye(x.shape[0], dtype=y.dtype)
    factorisation = factorise(gp.kernel(features, features) + gp.noise_variance * identity, mask)
    return features, factorisation, jnp.where(mask, y - gp.mean(features), 0.0)


def variance_correction(tasks: int | Int[Array, ""], observations: int | Int[Array, ""]) -> Float[Array, ""]:
    r"""The factor that makes a predictive variance unbiased for a prior estimated from N tasks.

    .. math:: \frac{N}{\max(N - t, 1)}

    Theorem 5 (posterior_bound): in iteration t, hence after t - 1 observations, the expected variance of the
    maximum-likelihood table prior is (N - t) / N of the truth, where N > t. It holds for the variance that
    includes the noise. Where t >= N the theorem says nothing; the factor then stays at N, its largest value,
    so that a long run goes on. This is an option: no method of the paper uses it, and priors of a parametric
    form, which pool many inputs, need it less than the table.

    Args:
      tasks: N, of the training.
      observations: t - 1, of the test function so far.

    >>> float(variance_correction(tasks=10, observations=4)), float(variance_correction(10, 50))
    (2.0, 10.0)
    """
    return tasks / jnp.maximum(tasks - observations - 1.0, 1.0)
