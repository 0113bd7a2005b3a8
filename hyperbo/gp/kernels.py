"""Kernels, on features; positive parameters are stored raw and pass through softplus."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.gp.numerics import matern52_of_squared_distance, softplus, squared_distances
from hyperbo.gp.pytree import pytree


@pytree
class Matern52:
    """Anisotropic Matern 5/2: s (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r), r the scaled distance.

    Attributes:
      raw_signal_variance: s before softplus.
      raw_lengthscales: one per feature, before softplus.
    """

    raw_signal_variance: Float[Array, ""]
    raw_lengthscales: Float[Array, " e"]

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        lengthscales = softplus(self.raw_lengthscales)
        squared = squared_distances(a / lengthscales, b / lengthscales)
        return softplus(self.raw_signal_variance) * matern52_of_squared_distance(squared)

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return jnp.full(features.shape[0], softplus(self.raw_signal_variance))
