"""The posterior over a finite set of candidates, without their covariance matrix."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree


@pytree
class CandidatePosterior:
    """Posterior over candidates, grown one observation at a time in O((t + e) C) time, O((t + e) C) memory.

    Row s of `rows` is row s of L^-1 K(observed, candidates), L the Cholesky factor of the noisy covariance
    of the observations: appending one observation appends one row to the factor, so no matrix is
    factorised again. `FinitePosterior` does the same for a covariance that is given as a matrix;
    here its rows come from the kernel as they are needed: of 1,400 candidates the matrix has 16 MB.

    Attributes:
      gp: prior.
      features: of the candidates.
      rows: one row per observation so far, zero below.
      mean: posterior mean at each candidate.
      variance: posterior variance of the function at each candidate, without noise.
    """

    gp: GaussianProcess
    features: Float[Array, "c e"]
    rows: Float[Array, "t c"]
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]

    @classmethod
    def of(cls, gp: GaussianProcess, candidates: Float[Array, "c d"], capacity: int) -> CandidatePosterior:
        """The prior over candidates, ready to be conditioned up to `capacity` times."""
        features = gp.features(candidates)
        rows = jnp.zeros((capacity, len(candidates)), candidates.dtype)
        return cls(gp, features, rows, gp.mean(features), gp.kernel.diagonal(features))

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        return self.gp.noise_variance

    def observe(
        self, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> CandidatePosterior:
        """Condition on one more observation, Eqs. (post_mu_approx) and (post_k_approx).

        Args:
          step: number of observations so far.
          candidate: which candidate was observed; it may have been observed before.
          y: its noisy value.
        """
        prior = self.gp.kernel(self.features[candidate][None], self.features)[0]
        explained = self.rows[:, candidate] @ self.rows
        # Noise keeps the pivot positive; a repeated candidate only divides by the noise that is there.
        pivot = jnp.sqrt(self.variance[candidate] + self.noise_variance)
        row = (prior - explained) / pivot
        return replace(
            self,
            rows=self.rows.at[step].set(row),
            mean=self.mean + (y - self.mean[candidate]) / pivot * row,
            variance=jnp.maximum(self.variance - row * row, 0.0),
        )
