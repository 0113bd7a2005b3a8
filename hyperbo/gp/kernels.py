"""Kernels, on features; positive parameters are stored raw and pass through softplus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.gp.numerics import (
    inverse_softplus,
    matern32_of_squared_distance,
    matern52_of_squared_distance,
    softplus,
    squared_distances,
)
from hyperbo.gp.pytree import pytree


def _squared_exponential_of_squared_distance(squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
    return jnp.exp(-0.5 * squared)


# c of a stationary kernel, as a function of the squared scaled distance r^2.
CORRELATIONS: dict[str, Callable[[Array], Array]] = {
    "squared_exponential": _squared_exponential_of_squared_distance,
    "matern32": matern32_of_squared_distance,
    "matern52": matern52_of_squared_distance,
}
KERNELS = (*CORRELATIONS, "dot_product", "linear")


@pytree
class Stationary:
    """An anisotropic kernel s c(r), r the distance between features, each over a lengthscale of its own.

    Attributes:
      raw_signal_variance: s before softplus.
      raw_lengthscales: one per feature, before softplus.
      correlation: c, one of `CORRELATIONS`.
    """

    raw_signal_variance: Float[Array, ""]
    raw_lengthscales: Float[Array, " e"]
    correlation: str = field(metadata={"static": True})

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        lengthscales = softplus(self.raw_lengthscales)
        squared = squared_distances(a / lengthscales, b / lengthscales)
        return softplus(self.raw_signal_variance) * CORRELATIONS[self.correlation](squared)

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return jnp.full(features.shape[0], softplus(self.raw_signal_variance))


@pytree
class DotProduct:
    """Anisotropic dot product: sum_j a_j b_j / l_j^2, the covariance of a random linear function.

    Attributes:
      raw_lengthscales: one l_j per feature, before softplus; they set the scale as well.
    """

    raw_lengthscales: Float[Array, " e"]

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        lengthscales = softplus(self.raw_lengthscales)
        return (a / lengthscales) @ (b / lengthscales).T

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return jnp.sum((features / softplus(self.raw_lengthscales)) ** 2, axis=1)


@pytree
class Linear:
    """ABLR's kernel: b^2 + phi(x) . phi(x') / s^2; section "Description of All Compared Methods", ABLR.

    Attributes:
      raw_bias: b before softplus.
      raw_scale: s before softplus, one for all features.
    """

    raw_bias: Float[Array, ""]
    raw_scale: Float[Array, ""]

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        return softplus(self.raw_bias) ** 2 + a @ b.T / softplus(self.raw_scale) ** 2

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return softplus(self.raw_bias) ** 2 + jnp.sum(features**2, axis=1) / softplus(self.raw_scale) ** 2


Kernel = Stationary | DotProduct | Linear


def initialise_kernel(
    name: str,
    width: int,
    raw_signal_variance: Float[Array, ""],
    raw_lengthscale: Float[Array, ""],
) -> Kernel:
    """A kernel before training.

    Args:
      name: one of `KERNELS`.
      width: number of features.
      raw_signal_variance: s of a stationary kernel, before softplus; for `linear` it is that of b^2.
      raw_lengthscale: the same for every feature, before softplus; for `linear` it is s.
    """
    if name == "linear":
        return Linear(inverse_softplus(jnp.sqrt(softplus(raw_signal_variance))), raw_lengthscale)
    raw_lengthscales = jnp.full(width, raw_lengthscale)
    if name == "dot_product":
        return DotProduct(raw_lengthscales)
    return Stationary(raw_signal_variance, raw_lengthscales, name)
