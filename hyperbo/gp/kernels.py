"""Kernels, on features; positive parameters are stored raw and pass through softplus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import (
    inverse_softplus,
    matern32_of_squared_distance,
    matern52_of_squared_distance,
    softplus,
    squared_distances,
)

# c of a stationary kernel, as a function of the squared scaled distance r^2.
CORRELATIONS: dict[str, Callable[[Array], Array]] = {
    "squared_exponential": lambda squared: jnp.exp(-0.5 * squared),
    "matern32": matern32_of_squared_distance,
    "matern52": matern52_of_squared_distance,
}
KERNELS = (*CORRELATIONS, "dot_product", "linear")


@pytree
class Stationary:
    """An anisotropic kernel s c(r), r the distance between features, each over a lengthscale of its own.

    The signal variance s and the lengthscales are before softplus; c is one of `CORRELATIONS`.
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

    The lengthscales l_j, before softplus, set the scale as well.
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
    """ABLR's kernel: b^2 + phi(x) . phi(x') / s^2; section 7.2 "Description of All Compared Methods", ABLR.

    The bias b, and the scale s of all features, are before softplus.
    """

    raw_bias: Float[Array, ""]
    raw_scale: Float[Array, ""]

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        return softplus(self.raw_bias) ** 2 + a @ b.T / softplus(self.raw_scale) ** 2

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return softplus(self.raw_bias) ** 2 + jnp.sum(features**2, axis=1) / softplus(self.raw_scale) ** 2


@pytree
class PlusConstant:
    """k(x, x') + v: the covariance of a process whose constant mean, normal of variance v, is integrated out.

    The variance v of the mean is before softplus.
    """

    inner: Stationary
    raw_mean_variance: Float[Array, ""]

    @property
    def raw_lengthscales(self) -> Float[Array, " e"]:
        """Those of the kernel without the mean's variance."""
        return self.inner.raw_lengthscales

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        return self.inner(a, b) + softplus(self.raw_mean_variance)

    def diagonal(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Variance at each row; the diagonal of the covariance without computing the rest."""
        return self.inner.diagonal(features) + softplus(self.raw_mean_variance)


@runtime_checkable
class KernelFunction(Protocol):
    """A kernel that no architecture names: any pytree that is a covariance of features."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def raw_lengthscales(self) -> Float[Array, "*m e"]:
        """Its length scales before softplus, of a stack one row for each."""
        ...

    def __call__(self, a: Float[Array, "n e"], b: Float[Array, "m e"], /) -> Float[Array, "n m"]:
        """Covariance between two sets of features."""
        ...

    def diagonal(self, features: Float[Array, "n e"], /) -> Float[Array, " n"]:
        """Variance at each row."""
        ...


Kernel = Stationary | DotProduct | Linear | PlusConstant | KernelFunction


def kernel_from_values(
    name: str, lengthscales: Float[Array, " l"], signal_variance: Float[Array, ""]
) -> Kernel:
    """A kernel with given positive parameters, one lengthscale per feature; for `linear` the lengthscale is
    its one scale s, and the signal variance is b^2. The dot product has no signal variance.
    """
    raw_lengthscales = inverse_softplus(lengthscales)
    if name == "linear":
        return Linear(inverse_softplus(jnp.sqrt(signal_variance)), raw_lengthscales[0])
    if name == "dot_product":
        return DotProduct(raw_lengthscales)
    return Stationary(inverse_softplus(signal_variance), raw_lengthscales, name)


def kernel_values(kernel: Kernel) -> tuple[str, Float[Array, " l"], Float[Array, ""]]:
    """What `kernel_from_values` takes: name, length scales and signal variance (1 for the dot product).

    Raises:
      InvalidInputError: no name makes the kernel, such as a `PlusConstant`.
    """
    match kernel:
        case Linear():
            return "linear", softplus(kernel.raw_scale[None]), softplus(kernel.raw_bias) ** 2
        case DotProduct():
            return "dot_product", softplus(kernel.raw_lengthscales), jnp.ones(())
        case Stationary():
            return kernel.correlation, softplus(kernel.raw_lengthscales), softplus(kernel.raw_signal_variance)
        case _:
            raise InvalidInputError(f"a kernel {type(kernel).__name__} has no name", where="GaussianProcess")


def initialise_kernel(
    name: str,
    width: int,
    raw_signal_variance: Float[Array, ""],
    raw_lengthscale: Float[Array, ""],
) -> Kernel:
    """A kernel before training; the numbers are raw, before softplus, and the lengthscale is that of every
    feature. For `linear` the signal variance is b^2 and the lengthscale is s.
    """
    if name == "linear":
        return Linear(inverse_softplus(jnp.sqrt(softplus(raw_signal_variance))), raw_lengthscale)
    raw_lengthscales = jnp.full(width, raw_lengthscale)
    if name == "dot_product":
        return DotProduct(raw_lengthscales)
    return Stationary(raw_signal_variance, raw_lengthscales, name)
