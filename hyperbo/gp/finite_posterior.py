"""The posterior over a finite set of candidates whose prior covariance is given as a matrix."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

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

    @classmethod
    def unobserved(
        cls,
        mean: Float[Array, " c"],
        covariance: Float[Array, "c c"],
        noise_variance: Float[Array, ""],
        capacity: int,
    ) -> FinitePosterior:
        """The prior with these moments, ready to be conditioned up to `capacity` times."""
        rows = jnp.zeros((capacity, mean.shape[0]), covariance.dtype)
        return cls(covariance, rows, mean, jnp.diagonal(covariance), noise_variance)

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
