"""Moments of a Gaussian process at plain arrays, before and after observations, in float64."""

from __future__ import annotations

import warnings
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64
from numpy.typing import ArrayLike

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision, plain_array
from hyperbo.gp.posterior import condition


class Moments(NamedTuple):
    """Mean and covariance of a Gaussian process at M inputs.

    Attributes:
      mean: at each input.
      covariance: between the inputs; of observations where the noise was asked for, else of function values.
    """

    mean: Float64[np.ndarray, " m"]
    covariance: Float64[np.ndarray, "m m"]

    @property
    def variance(self) -> Float64[np.ndarray, " m"]:
        """The diagonal of the covariance; never negative."""
        return np.maximum(np.diag(self.covariance), 0.0)


@double_precision
def prior_moments(gp: GaussianProcess, x: ArrayLike, *, noise: bool = False) -> Moments:
    """Prior mean and covariance at some inputs.

    Args:
      gp: the prior.
      x: M inputs, one per row: an array of shape (M, d).
      noise: whether the covariance is that of observations: with the noise variance on its diagonal.

    Returns:
      NumPy float64 arrays, whatever the default precision of JAX.

    Raises:
      InvalidInputError: x has another number of axes or columns, or a value that is not finite.

    >>> gp = GaussianProcess.from_values(lengthscales=[0.5], signal_variance=2.0, noise_variance=0.25)
    >>> prior_moments(gp, [[0.1]], noise=True).covariance.round(12).tolist()
    [[2.25]]
    """
    return Moments(*map(np.asarray, _prior_moments(noise, gp, jnp.asarray(as_inputs(gp, x)))))


@partial(jax.jit, static_argnums=0)
def _prior_moments(noise: bool, gp: GaussianProcess, x: Float[Array, "m d"]) -> tuple[Array, Array]:
    return gp.noisy_moments(x) if noise else gp.moments(x)


@double_precision
def posterior_moments(
    gp: GaussianProcess, x: ArrayLike, y: ArrayLike, at: ArrayLike, *, noise: bool = False
) -> Moments:
    r"""Posterior mean and covariance, Eqs. 17 (post_mu_approx) and 18 (post_k_approx).

    .. math:: \mu(x') + k(x', x) (k(x, x) + \sigma^2 I)^{-1} (y - \mu(x)), \qquad
              k(x', x'') - k(x', x) (k(x, x) + \sigma^2 I)^{-1} k(x, x'')

    Args:
      gp: the prior, which stays fixed.
      x: observed inputs, one per row; there may be none: shape (0, d).
      y: observed values, one per row of x.
      at: M inputs to predict at, one per row.
      noise: whether the covariance is that of new observations: with the noise variance on its diagonal.

    Returns:
      NumPy float64 arrays, whatever the default precision of JAX.

    Raises:
      InvalidInputError: the arrays do not fit each other, or a value is not finite.
      NumericalError: the covariance of the observations is not positive definite.

    >>> gp = GaussianProcess.from_values(lengthscales=[0.5], signal_variance=1.0, noise_variance=1.0)
    >>> found = posterior_moments(gp, [[0.0]], [2.0], at=[[0.0]])
    >>> found.mean.round(12).tolist(), found.variance.round(12).tolist()
    ([1.0], [0.5])
    """
    inputs, values, new = *as_observations(gp, x, y), as_inputs(gp, at, "at")
    if inputs.shape[1] != new.shape[1]:
        raise InvalidInputError(f"x has {inputs.shape[1]} columns and `at` has {new.shape[1]}")
    if not len(values):
        return prior_moments(gp, new, noise=noise)
    mask = np.ones(len(values), bool)
    mean, covariance, jitter = _posterior_moments(noise, gp, *map(jnp.asarray, (inputs, values, mask, new)))
    check_factorised(np.asarray(mean), float(jitter))
    return Moments(np.asarray(mean), np.asarray(covariance))


@partial(jax.jit, static_argnums=0)
def _posterior_moments(
    noise: bool,
    gp: GaussianProcess,
    x: Float[Array, "t d"],
    y: Float[Array, " t"],
    mask: Bool[Array, " t"],
    at: Float[Array, "m d"],
) -> tuple[Array, Array, Array]:
    posterior = condition(gp, x, y, mask)
    covariance = posterior.covariance(at)
    if noise:
        covariance += gp.noise_variance * jnp.eye(len(at), dtype=covariance.dtype)
    return posterior.mean(at), covariance, posterior.jitter


def as_inputs(gp: GaussianProcess, x: ArrayLike, name: str = "x") -> Float64[np.ndarray, "n d"]:
    """Inputs of a process as a NumPy float64 array, one per row.

    Raises:
      InvalidInputError: x has not two axes, another number of columns than the process has inputs, or a value
        that is not finite.
    """
    inputs = plain_array(name, x, axes=2)
    if gp.dimension not in (None, inputs.shape[1]):
        raise InvalidInputError(
            f"{name} has the shape {inputs.shape}, the process has inputs of dimension {gp.dimension}",
            fix=f"give {name} of shape (n, {gp.dimension})",
        )
    return inputs


def as_observations(
    gp: GaussianProcess, x: ArrayLike, y: ArrayLike
) -> tuple[Float64[np.ndarray, "n d"], Float64[np.ndarray, " n"]]:
    """Inputs and the values observed there, as NumPy float64 arrays.

    Raises:
      InvalidInputError: the arrays do not fit each other, or a value is not finite.
    """
    inputs, values = as_inputs(gp, x), plain_array("y", y, axes=1)
    if len(values) != len(inputs):
        raise InvalidInputError(
            f"y has the shape {values.shape} for {len(inputs)} inputs", fix="give one value per row of x"
        )
    return inputs, values


def check_factorised(result: Float64[np.ndarray, "*n"], jitter: float) -> None:
    """Refuse a result of a factorisation that failed, and warn of one that needed jitter.

    Raises:
      NumericalError: the result is not finite.
    """
    if not np.isfinite(result).all():
        raise NumericalError(
            "the covariance of the observations is not positive definite, or too large; "
            "use a larger noise variance"
        )
    if jitter > 0.0:
        warnings.warn(
            f"the covariance of the observations needed a relative jitter of {jitter:.0e}", stacklevel=4
        )
