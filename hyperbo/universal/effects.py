"""Effects of single columns: a mean and a covariance that are quadratic in each coordinate."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.compute.pytree import pytree
from hyperbo.gp.kernels import Stationary


@pytree
class Effects:
    offset: Float[Array, " d"]
    slope: Float[Array, " d"]

    def __call__(self, x):
        u = self.offset + self.slope * x
        return jnp.concatenate([u, u**2 - 1.0 / 3.0], axis=1)


@pytree
class EffectsMean:
    basis: Effects
    weights: Float[Array, " p"]

    def __call__(self, x):
        return self.basis(x) @ self.weights


@pytree
class PlusEffects:
    inner: Stationary
    basis: Effects
    variances: Float[Array, " p"]
    constant: Float[Array, ""]

    def __call__(self, a, b):
        return self.inner(a, b) + (self.basis(a) * self.variances) @ self.basis(b).T + self.constant

    def diagonal(self, x):
        return self.inner.diagonal(x) + self.basis(x) ** 2 @ self.variances + self.constant
