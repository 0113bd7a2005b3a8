"""Stable numerics of the Gaussian-process code.

Derivatives are in closed form where differentiating the formula gives NaN, at distance 0 of the Matern
kernels, or costs more: `gaussian_nll` needs one triangular inverse instead of the derivative of a Cholesky
factor, and exactly nothing from padded rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Float64

from hyperbo.errors import InvalidInputError, NumericalError

P = ParamSpec("P")
R = TypeVar("R")

FIRST_JITTER = 1e-10
FIRST_JITTER_ROUNDINGS = 8  # in float32, where FIRST_JITTER is far below the rounding error
LARGEST_JITTER = 1e-4


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with 64-bit JAX, and leave the caller's precision as it was.

    Covariances are factorised in float64; a caller who trains a float32 network in the same process must
    not find JAX's global default changed.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return run


def plain_array(name: str, value: object, axes: int, where: str = "") -> Float64[np.ndarray, ...]:
    """An array that a user gave, as a NumPy float64 array.

    Raises:
      InvalidInputError: the value is not made of numbers, has another number of axes, or is not finite.

    >>> plain_array("y", [1, 2], axes=1).tolist()
    [1.0, 2.0]
    """
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} is not an array of numbers", where=where) from error
    if array.ndim != axes:
        expected = ("one number", "an array with one axis", "an array with two axes")[axes]
        raise InvalidInputError(f"{name} has the shape {array.shape}", where=where, fix=f"give {expected}")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} has a value that is not finite", where=where)
    return array


def softplus(raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """ln(1 + exp(raw)): the map from an unconstrained parameter to a positive one."""
    return jnp.logaddexp(raw, 0.0)


def inverse_softplus(positive: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The unconstrained parameter whose `softplus` is given: p + ln(1 - exp(-p))."""
    return positive + jnp.log(-jnp.expm1(-positive))


def squared_distances(a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """|a_i - b_j|^2 by one matrix product; never negative.

    In float32 the points are first moved to their centre: norms, and with them the rounding errors of their
    difference, shrink about tenfold on the features of trained models.
    """
    if a.dtype == jnp.float32:
        centre = lax.stop_gradient(jnp.mean(a, axis=0))  # distances do not depend on it
        a, b = a - centre, b - centre
    norms = jnp.sum(a * a, axis=1)[:, None] + jnp.sum(b * b, axis=1)[None, :]
    return jnp.maximum(norms - 2.0 * a @ b.T, 0.0)


@jax.custom_jvp
def matern32_of_squared_distance(squared: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """(1 + sqrt(3) r) exp(-sqrt(3) r) of r^2, differentiable at zero."""
    scaled = jnp.sqrt(3.0 * squared)
    return (1.0 + scaled) * jnp.exp(-scaled)


@matern32_of_squared_distance.defjvp
def _matern32_jvp(
    primals: tuple[Float[Array, "*n"]], tangents: tuple[Float[Array, "*n"]]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    (squared,), (tangent,) = primals, tangents
    scaled = jnp.sqrt(3.0 * squared)
    decay = jnp.exp(-scaled)
    # -u exp(-u) times du/dr^2 = 3 / (2 u): the distance that would divide cancels.
    return (1.0 + scaled) * decay, -1.5 * decay * tangent


@jax.custom_jvp
def matern52_of_squared_distance(squared: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """(1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r) of r^2, differentiable at zero."""
    scaled = jnp.sqrt(5.0 * squared)
    return (1.0 + scaled + scaled * scaled / 3.0) * jnp.exp(-scaled)


@matern52_of_squared_distance.defjvp
def _matern52_jvp(
    primals: tuple[Float[Array, "*n"]], tangents: tuple[Float[Array, "*n"]]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    (squared,), (tangent,) = primals, tangents
    scaled = jnp.sqrt(5.0 * squared)
    decay = jnp.exp(-scaled)
    value = (1.0 + scaled + scaled * scaled / 3.0) * decay
    return value, (-5.0 / 6.0) * (1.0 + scaled) * decay * tangent


@custom_vmap
def _transposed_factors(matrix: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    """L^T and L^-T of a symmetric matrix: LAPACK works by columns, so no array need be turned around."""
    factor = lax.linalg.cholesky(matrix.T, symmetrize_input=False)
    identity = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    return factor.T, solve_triangular(factor, identity, lower=True).T


@_transposed_factors.def_vmap
def _transposed_factors_of_batch(
    axis_size: int, in_batched: list[bool], matrices: Float[Array, "b n n"]
) -> tuple[tuple[Float[Array, "b n n"], Float[Array, "b n n"]], tuple[bool, bool]]:
    # On CPU a batched LAPACK call waits, inside XLA's thread pool, for threads of the same pool; two such
    # calls at a time hang a machine of two cores (docs/decisions/cpu-factorisation.md): one matrix at a time.
    if jax.default_backend() == "cpu":
        return lax.map(_transposed_factors, matrices), (True, True)
    factors = lax.linalg.cholesky(jnp.swapaxes(matrices, 1, 2), symmetrize_input=False)
    identities = jnp.broadcast_to(jnp.eye(matrices.shape[-1], dtype=matrices.dtype), matrices.shape)
    inverse_factors = lax.linalg.triangular_solve(factors, identities, left_side=True, lower=True)
    return (jnp.swapaxes(factors, 1, 2), jnp.swapaxes(inverse_factors, 1, 2)), (True, True)


class Factorisation(NamedTuple):
    """A covariance taken apart: Sigma = L L^T, L lower triangular.

    Products with the inverse factor L^-1 replace triangular solves. The jitter is what was added to the
    diagonal, relative to its mean.
    """

    factor: Float[Array, "n n"]
    inverse_factor: Float[Array, "n n"]
    jitter: Float[Array, ""]


def factorise(matrix: Float[Array, "n n"], mask: Bool[Array, " n"]) -> Factorisation:
    """Cholesky factor of a covariance and its inverse, with the smallest jitter that makes them exist.

    The jitter is 0, then 1e-10, 1e-9, ... up to 1e-4, relative to the mean of the diagonal; in float32 it is
    0, 9.5e-7, 9.5e-6, 9.5e-5. A matrix that fails even then gives NaN, which callers outside compiled code
    turn into a NumericalError.

    Args:
      matrix: symmetric matrix.
      mask: which rows and columns count; the others become those of the identity, in both factors.
    """
    inside = mask[:, None] & mask[None, :]
    matrix = jnp.where(inside, matrix, jnp.eye(len(mask), dtype=matrix.dtype))
    # Padding takes no part in the jitter: neither in its scale nor in what it is added to.
    ones = mask.astype(matrix.dtype)
    scaled_ones = jnp.diag(ones * (ones @ jnp.diagonal(matrix)) / jnp.maximum(jnp.sum(ones), 1.0))

    first_jitter = max(FIRST_JITTER, FIRST_JITTER_ROUNDINGS * float(jnp.finfo(matrix.dtype).eps))

    def failed(tried: tuple[Array, Array, Array]) -> Array:
        transposed, _, jitter = tried
        # A failure fills the factor with NaN; any other value that is not finite reaches its row's diagonal.
        finite = jnp.all(jnp.isfinite(jnp.diagonal(transposed)))
        return ~finite & (jitter < 0.5 * LARGEST_JITTER)

    def try_more(tried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        jitter = jnp.maximum(10.0 * tried[2], first_jitter)
        return *_transposed_factors(matrix + jitter * scaled_ones), jitter

    start = (*_transposed_factors(matrix), jnp.zeros((), matrix.dtype))
    transposed, inverse_transposed, jitter = lax.while_loop(failed, try_more, start)
    return Factorisation(transposed.T, inverse_transposed.T, jitter)


@jax.custom_vjp
def gaussian_nll(
    residuals: Float[Array, "n r"], covariance: Float[Array, "n n"], mask: Bool[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Negative log density of zero-mean Gaussian residuals, Eq. 14 (singleml), over the rows of the mask.

    .. math:: \tfrac12 \left(\mathrm{tr}(R^\top \Sigma^{-1} R) + \ln|\Sigma| + M \ln 2\pi\right)

    With one column this is the NLL of one task. With the columns (y_i - mu) / sqrt(N) of N tasks it is
    their mean NLL, which is also EKL up to terms that do not depend on the model.

    Args:
      residuals: R, observations less the mean, one column per weighted observation vector.
      covariance: Sigma, including noise. Rows and columns outside the mask are ignored.
      mask: which rows are observations; M is their number.

    Returns:
      The value, and the relative jitter that the factorisation needed (no gradient flows through it).
    """
    value, jitter, _, _ = _gaussian_nll_parts(residuals, covariance, mask)
    return value, jitter


def _gaussian_nll_parts(
    residuals: Float[Array, "n r"], covariance: Float[Array, "n n"], mask: Bool[Array, " n"]
) -> tuple[Array, Array, Array, Array]:
    # Padding becomes the identity and zero residuals: it adds exactly 0 to every term.
    factor, inverse_factor, jitter = factorise(covariance, mask)
    whitened = inverse_factor @ jnp.where(mask[:, None], residuals, 0.0)
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    constant = jnp.sum(mask, dtype=covariance.dtype) * math.log(2.0 * math.pi)
    value = 0.5 * (jnp.sum(whitened * whitened) + log_determinant + constant)
    return value, jitter, inverse_factor, whitened


def _gaussian_nll_forward(
    residuals: Float[Array, "n r"], covariance: Float[Array, "n n"], mask: Bool[Array, " n"]
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
    value, jitter, inverse_factor, whitened = _gaussian_nll_parts(residuals, covariance, mask)
    return (value, jitter), (inverse_factor, whitened, mask)


def _gaussian_nll_backward(
    saved: tuple[Array, Array, Array], cotangents: tuple[Array, Array]
) -> tuple[Array, Array, None]:
    inverse_factor, whitened, mask = saved
    cotangent, _ = cotangents
    solved = inverse_factor.T @ whitened  # Sigma^-1 R; zero on padded rows
    gradient = 0.5 * (inverse_factor.T @ inverse_factor - solved @ solved.T)
    inside = mask[:, None] & mask[None, :]
    return cotangent * solved, cotangent * jnp.where(inside, gradient, 0.0), None


gaussian_nll.defvjp(_gaussian_nll_forward, _gaussian_nll_backward)


def cholesky(matrix: Float64[np.ndarray, "*b n n"], what: str) -> Float64[np.ndarray, "*b n n"]:
    """Lower Cholesky factor in NumPy, without jitter, which would change the numbers that are reported.

    Raises:
      NumericalError: the matrix, called `what`, is not positive definite.
    """
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"{what} is not positive definite") from error
    if not np.isfinite(factor).all():  # LAPACK takes NaN for a pivot
        raise NumericalError(f"{what} is not positive definite: it is not finite")
    return factor
