r"""The logarithm of the standardised expected improvement, without cancellation in the tail.

The integrals :math:`I_n(a) = \int_a^\infty (t - a)^n \varphi(t)\,dt / n!` obey
:math:`n I_n = I_{n-2} - a I_{n-1}`, with :math:`I_{-1} = \varphi`. So the ratios
:math:`r_n = I_n / I_{n-1}` are a continued fraction of positive terms,
:math:`r_n = 1 / (a + (n + 1) r_{n+1})`, and the expected improvement at :math:`z = -a` is
:math:`I_1 = \varphi(a) r_0 r_1`: no difference of nearly equal numbers, however far the tail.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

# Above, phi(z) + z Phi(z) loses less than two digits; below, the continued fraction needs few terms.
TAIL_BEGINS = -4.0
TAIL_TERMS = 20


def _tail_ratios(a: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """r_0, the Mills ratio Phi(-a) / phi(a), and r_1 = I_1 / I_0."""
    # The last term is close to the fixed point of r = 1 / (a + n r).
    inner = outer = 2.0 / (a + jnp.sqrt(a * a + 4.0 * TAIL_TERMS))
    for n in range(TAIL_TERMS - 1, -1, -1):
        inner, outer = outer, 1.0 / (a + (n + 1) * outer)
    return outer, inner


def _split(z: Float[Array, "*n"]) -> tuple[Bool[Array, "*n"], Float[Array, "*n"], Float[Array, "*n"]]:
    """Where z is in the tail, and z limited to either side: neither branch may leave its own domain."""
    tail = z < TAIL_BEGINS
    return tail, jnp.where(tail, z, TAIL_BEGINS), jnp.where(tail, TAIL_BEGINS, z)


@jax.custom_jvp
def log_improvement(z: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""The logarithm of the expected improvement of a standard normal variable over -z.

    .. math:: \ln\left(\varphi(z) + z \Phi(z)\right)

    Its relative error is of the size of rounding from -1e150 to 1e300, and so is that of its derivative
    :math:`\Phi(z) / (\varphi(z) + z \Phi(z))`.

    >>> with jax.enable_x64(True):
    ...     value, slope = jax.value_and_grad(log_improvement)(jnp.asarray(-1e3))
    >>> round(float(value), 6), round(float(slope), 6)
    (-500014.734452, 1000.002)
    """
    tail, low, high = _split(z)
    mills, ratio = _tail_ratios(-low)
    in_tail = -0.5 * low * low - 0.5 * math.log(2.0 * math.pi) + jnp.log(mills * ratio)
    return jnp.where(tail, in_tail, jnp.log(norm.pdf(high) + high * ndtr(high)))


@log_improvement.defjvp
def _log_improvement_jvp(
    primals: tuple[Float[Array, "*n"]], tangents: tuple[Float[Array, "*n"]]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    (z,), (tangent,) = primals, tangents
    tail, low, high = _split(z)
    _, ratio = _tail_ratios(-low)
    cumulative = ndtr(high)
    slope = jnp.where(tail, 1.0 / ratio, cumulative / (norm.pdf(high) + high * cumulative))
    return log_improvement(z), slope * tangent
