"""The posterior over a finite set of candidates, of which only the rows that are observed are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess


@runtime_checkable
class CandidatePrior(Protocol):
    """What a prior over candidates must offer to be conditioned; a pytree."""

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        ...

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """Prior covariance of one candidate with all, without noise."""
        ...


@pytree
class GPOnCandidates:
    """A Gaussian process on candidates with these features; it computes a row of the covariance when it is
    needed, because the whole matrix of 1,400 candidates would take 16 MB.
    """

    gp: GaussianProcess
    features: Float[Array, "c e"]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        return self.gp.noise_variance

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """The kernel between one candidate and all."""
        return self.gp.kernel(self.features[candidate][None], self.features)[0]


@pytree
class CandidatePosterior:
    """Posterior over candidates, grown one observation at a time in O((t + e) C) time, O((t + e) C) memory.

    Row s of `rows` is row s of L^-1 K(observed, candidates), L the Cholesky factor of the noisy covariance
    of the observations: appending one observation appends one row to the factor, so no matrix is
    factorised again. Rows without an observation are zero.

    Attributes:
      prior: gives the rows of the prior covariance; their cost and memory are its own: e features of every
        candidate where it is a Gaussian process.
      variance: posterior variance of the function at each candidate, without noise.
    """

    prior: CandidatePrior
    rows: Float[Array, "t c"]
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]

    @classmethod
    def of(cls, gp: GaussianProcess, candidates: Float[Array, "c d"], capacity: int) -> CandidatePosterior:
        """A Gaussian process over candidates, ready to be conditioned up to `capacity` times."""
        features = gp.features(candidates)
        prior = GPOnCandidates(gp, features)
        return cls.unobserved(prior, gp.mean(features), gp.kernel.diagonal(features), capacity)

    @classmethod
    def unobserved(
        cls, prior: CandidatePrior, mean: Float[Array, " c"], variance: Float[Array, " c"], capacity: int
    ) -> CandidatePosterior:
        """A prior with these marginal moments, ready to be conditioned up to `capacity` times."""
        return cls(prior, jnp.zeros((capacity, len(mean)), mean.dtype), mean, variance)

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        return self.prior.noise_variance

    def observe(
        self, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> CandidatePosterior:
        """Condition on one more observation, Eqs. 17 (post_mu_approx) and 18 (post_k_approx).

        Args:
          step: number of observations so far.
          candidate: which candidate was observed; it may have been observed before.
          y: its noisy value.
        """
        explained = self.rows[:, candidate] @ self.rows
        # Noise keeps the pivot positive; a repeated candidate only divides by the noise that is there.
        pivot = jnp.sqrt(self.variance[candidate] + self.noise_variance)
        row = (self.prior.covariance_row(candidate) - explained) / pivot
        return replace(
            self,
            rows=self.rows.at[step].set(row),
            mean=self.mean + (y - self.mean[candidate]) / pivot * row,
            variance=jnp.maximum(self.variance - row * row, 0.0),
        )
