"""Priors on positive parameters, for type-II maximum likelihood: their penalties are added to the NLL.

A penalty is the negative log density up to a constant that does not depend on the parameter. STBO's priors
are densities of the parameter itself; STBOH's are densities of its logarithm, and differ by the Jacobian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import inverse_softplus

# STBOH keeps a parameter between these quantiles of its prior.
LOWER_QUANTILE, UPPER_QUANTILE = 0.01, 0.99


@dataclass(frozen=True)
class _LocationScale:
    """A density described by the mean and the standard deviation of a Gaussian."""

    location: float
    scale: float

    def __post_init__(self) -> None:
        if not (0.0 < self.scale < math.inf and math.isfinite(self.location)):
            raise InvalidInputError(
                f"{self} is no density", fix="a finite location, and a scale that is finite and positive"
            )

    def _standardised(self, value: Float[Array, "*n"]) -> Float[Array, "*n"]:
        # x - 0.0 is x to the last bit.
        return (value - self.location) / self.scale


class Normal(_LocationScale):
    """Normal(m, s) on the value v itself; the density is not cut off at 0."""

    def penalty(self, value: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """((v - m) / s)^2 / 2."""
        return 0.5 * self._standardised(value) ** 2


class LogNormal(_LocationScale):
    """Lognormal(m, s) on the value v: ln v has Normal(m, s), and the density is that of v."""

    def penalty(self, value: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Ln v + ((ln v - m) / s)^2 / 2; the first term is the Jacobian."""
        logarithm = jnp.log(value)
        return logarithm + 0.5 * self._standardised(logarithm) ** 2


class NormalOfLogarithm(_LocationScale):
    """Normal(m, s) on ln v, with the density taken over ln v: its mode is v = exp(m)."""

    def penalty(self, value: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """((ln v - m) / s)^2 / 2."""
        return 0.5 * self._standardised(jnp.log(value)) ** 2

    def clipped(self, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The value of an unconstrained parameter: exp of it, soft-clipped to the 1st..99th percentile."""
        return jnp.exp(soft_clip(raw, *self._quantiles()))

    def unclipped(self, value: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The unconstrained parameter whose `clipped` value is given; it must lie between the percentiles."""
        return inverse_soft_clip(jnp.log(value), *self._quantiles())

    def _quantiles(self) -> tuple[float, float]:
        normal = NormalDist(self.location, self.scale)
        return normal.inv_cdf(LOWER_QUANTILE), normal.inv_cdf(UPPER_QUANTILE)


def soft_clip(raw: Float[Array, "*n"], low: float, high: float) -> Float[Array, "*n"]:
    r"""Map the real line smoothly and monotonically onto (low, high).

    .. math:: high - softplus(high - low - softplus(raw - low)) (high - low) / softplus(high - low)

    Well inside the interval the map is close to the identity where the interval is long against 1.

    >>> with jax.enable_x64(True):
    ...     clipped = soft_clip(jnp.array([-50.0, 3.0, 50.0]), -10.0, 10.0)
    >>> clipped.round(2).tolist()
    [-10.0, 3.0, 10.0]
    """
    return high - _scale(high - low) * jax.nn.softplus(high - low - jax.nn.softplus(raw - low))


def inverse_soft_clip(clipped: Float[Array, "*n"], low: float, high: float) -> Float[Array, "*n"]:
    """The unconstrained number whose `soft_clip` is given, for numbers inside (low, high)."""
    return low + inverse_softplus(high - low - inverse_softplus((high - clipped) / _scale(high - low)))


def _scale(width: float) -> float:
    # softplus(width) without overflow; it makes the lower end exactly `low`.
    return width / (width + math.log1p(math.exp(-width)))
