r"""Effects of single columns, as a part of a Gaussian process: quadratic in each coordinate.

The coordinate of column j is u_j = 2 x_j - 1 in [-1, 1], and its basis is

.. math:: \phi_j(x) = (u_j, \; u_j^2 - \tfrac13),

whose second function has the average 0 over the range. The function of a task is

.. math:: f(x) = c + \sum_j w_j^\top \phi_j(x) + g(x), \qquad w_j \sim \mathcal N(m_j, \mathrm{diag}(s_j)),

with c normal and g a Gaussian process, and all of c, w and g are integrated out: the mean is
:math:`m^\top \phi(x)`, the covariance :math:`v + \phi(x)^\top S \phi(x') + k(x, x')`. Explicit basis
functions: Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 2.7.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.compute.pytree import pytree
from hyperbo.gp.kernels import Stationary


def effects(x: Float[Array, "n d"]) -> Float[Array, "n e"]:
    """The basis: the linear function of every column, then the quadratic ones; e = 2 d."""
    u = 2.0 * x - 1.0
    return jnp.concatenate([u, u**2 - 1.0 / 3.0], axis=1)


@pytree
class EffectsMean:
    """What the effects are expected to add: m . phi(x)."""

    weights: Float[Array, " e"]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Prior mean at inputs."""
        return effects(x) @ self.weights


@pytree
class PlusEffects:
    """k(x, x') plus the covariance of a constant and of the effects.

    Attributes:
      inner: k.
      variances: of the weights of the effects.
      constant: variance of the constant.
    """

    inner: Stationary
    variances: Float[Array, " e"]
    constant: Float[Array, ""]

    @property
    def raw_lengthscales(self) -> Float[Array, "*m d"]:
        """Those of the inner kernel."""
        return self.inner.raw_lengthscales

    def __call__(self, a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """Covariance between two sets of inputs."""
        return self.inner(a, b) + (effects(a) * self.variances) @ effects(b).T + self.constant

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Variance at each row."""
        return self.inner.diagonal(x) + effects(x) ** 2 @ self.variances + self.constant
