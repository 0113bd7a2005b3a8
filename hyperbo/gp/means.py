"""Mean functions, on features."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError

MEANS = ("zero", "constant", "linear", "affine")


@pytree
class Zero:
    """mu(x) = 0, without a parameter."""

    def __call__(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        return jnp.zeros(features.shape[0], features.dtype)


@pytree
class Constant:
    """mu(x) = c, learned."""

    value: Float[Array, ""]

    def __call__(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        return jnp.full(features.shape[0], self.value)


@pytree
class Linear:
    """mu(x) = w . phi(x): with MLP features, the paper's linear MLP mean."""

    weight: Float[Array, " e"]

    def __call__(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        return features @ self.weight


@pytree
class Affine:
    """mu(x) = w . phi(x) + c: the linear mean for inputs of the unit cube, whose zero is only a corner."""

    weight: Float[Array, " e"]
    offset: Float[Array, ""]

    def __call__(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        return features @ self.weight + self.offset


@runtime_checkable
class MeanFunction(Protocol):
    """A mean that no architecture names: any pytree that is a function of features."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __call__(self, features: Float[Array, "n e"], /) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        ...


Mean = Zero | Constant | Linear | Affine | MeanFunction


def mean_from_values(constant: Float[Array, ""] | None, weights: Float[Array, " e"] | None) -> Mean:
    """A mean with given parameters: the constant c, the weights w, both, or neither."""
    if weights is None:
        return Zero() if constant is None else Constant(constant)
    return Linear(weights) if constant is None else Affine(weights, constant)


def mean_values(mean: Mean) -> tuple[Float[Array, ""] | None, Float[Array, " e"] | None]:
    """What `mean_from_values` takes: the constant and the weights, None where the mean has none.

    Raises:
      InvalidInputError: no name makes the mean.
    """
    match mean:
        case Zero():
            return None, None
        case Constant():
            return mean.value, None
        case Linear():
            return None, mean.weight
        case Affine():
            return mean.offset, mean.weight
        case _:
            raise InvalidInputError(f"a mean {type(mean).__name__} has no values", where="GaussianProcess")


def initialise_mean(key: PRNGKeyArray, name: str, width: int) -> Mean:
    """A mean before training: weights from N(0, 1 / width), one per feature; constants zero."""
    if name == "zero":
        return Zero()
    zero = jnp.zeros((), jnp.float64)
    if name == "constant":
        return Constant(zero)
    weight = jax.random.normal(key, (width,), jnp.float64) / jnp.sqrt(jnp.float64(width))
    return Linear(weight) if name == "linear" else Affine(weight, zero)
