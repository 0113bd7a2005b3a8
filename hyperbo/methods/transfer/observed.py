"""The observations of a run, and which of several Gaussian processes explains them best."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import gaussian_nll


@pytree
class Observed:
    """The observations of a run: which candidates, and their values; rows from the step on are room."""

    candidates: Int[Array, " t"]
    y: Float[Array, " t"]

    @classmethod
    def none(cls, capacity: int, dtype: jnp.dtype) -> Observed:
        """Room for observations."""
        return cls(jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity, dtype))

    def seen(self, step: Int[Array, ""]) -> Bool[Array, " t"]:
        """Which rows are observations, after `step` of them."""
        return jnp.arange(len(self.y)) < step

    def add(self, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]) -> Observed:
        """One more, after `step` others."""
        chosen = self.candidates.at[step].set(candidate.astype(jnp.int32))
        return Observed(chosen, self.y.at[step].set(y))

    def standardised(
        self,
        location: Float[Array, ""],
        scale: Float[Array, ""],
        seen: Bool[Array, " t"],
        enough: Bool[Array, ""],
    ) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " t"]]:
        """Location and scale of the test task, and its values by them.

        Until `enough` is observed they are those given; where all observations are equal, the scale is.
        """
        count = jnp.maximum(jnp.sum(seen), 1)
        mean = jnp.sum(jnp.where(seen, self.y, 0.0)) / count
        deviation = jnp.sqrt(jnp.sum(jnp.where(seen, (self.y - mean) ** 2, 0.0)) / count)
        location = jnp.where(enough, mean, location)
        scale = jnp.where(enough & (deviation > 0.0), deviation, scale)
        return location, scale, jnp.where(seen, (self.y - location) / scale, 0.0)


def best_explaining(
    gps: GaussianProcess, x: Float[Array, "t d"], y: Float[Array, " t"], mask: Bool[Array, " t"]
) -> GaussianProcess:
    """Of stacked processes the one under whose hyperparameters observations are most probable."""

    def nll(gp: GaussianProcess) -> Array:
        mean, covariance = gp.noisy_moments(x)
        return gaussian_nll((y - mean)[:, None], covariance, mask)[0]

    best = jnp.argmin(lax.map(nll, gps))
    return jax.tree.map(lambda leaf: leaf[best], gps)
