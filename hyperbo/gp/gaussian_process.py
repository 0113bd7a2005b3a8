"""GaussianProcess: features, mean, kernel and noise put together into a prior."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hyperbo.errors import InvalidInputError
from hyperbo.gp.features import MLP, initialise_mlp
from hyperbo.gp.kernels import KERNELS, Kernel, initialise_kernel
from hyperbo.gp.means import MEANS, Mean, initialise_mean
from hyperbo.gp.numerics import inverse_softplus, softplus
from hyperbo.gp.pytree import pytree


@dataclass(frozen=True)
class Architecture:
    """Structure of a Gaussian process; by default an MLP that feeds a linear mean and a Matern 5/2 kernel.

    Section "Impact of Mean and Kernel Structures" compares `mean` in zero, constant and
    linear, with the default kernel on several `hidden`. ABLR is `kernel="linear"` with `mean="zero"`, FSBO
    the default kernel with `mean="zero"`.

    Attributes:
      hidden: sizes of the tanh layers; (32, 32) is the paper's for PD1. With none, mean and kernel stand on
        the inputs.
      signal_variance: initial value; that of b^2 for the linear kernel; the dot product has none.
      lengthscale: initial value, the same for every feature.
      noise_variance: initial value.
      kernel: one of `hyperbo.gp.kernels.KERNELS`.
      mean: one of `hyperbo.gp.means.MEANS`.

    >>> Architecture(kernel="matern12")
    Traceback (most recent call last):
        ...
    hyperbo.errors.InvalidInputError: Architecture: unknown kernel 'matern12'; use squared_exponential, \
matern32, matern52, dot_product, linear
    """

    hidden: tuple[int, ...] = (32, 32)
    signal_variance: float = 1.0
    lengthscale: float = 1.0
    noise_variance: float = 0.01
    kernel: str = "matern52"
    mean: str = "linear"

    def __post_init__(self) -> None:
        if self.hidden and min(self.hidden) < 1:
            raise InvalidInputError(f"hidden = {self.hidden} has an empty layer", where="Architecture")
        for name in ("signal_variance", "lengthscale", "noise_variance"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)} is not positive", where="Architecture"
                )
        for name, known in (("kernel", KERNELS), ("mean", MEANS)):
            if getattr(self, name) not in known:
                raise InvalidInputError(
                    f"unknown {name} {getattr(self, name)!r}",
                    where="Architecture",
                    fix=f"use {', '.join(known)}",
                )


@pytree
class GaussianProcess:
    """GP(mu, k) with Gaussian observation noise, mean and kernel both on features of the input."""

    features: MLP
    mean: Mean
    kernel: Kernel
    raw_noise_variance: Float[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations."""
        return softplus(self.raw_noise_variance)

    def moments(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Prior mean and covariance of the function values at x, without noise."""
        features = self.features(x)
        return self.mean(features), self.kernel(features, features)

    def noisy_moments(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Prior mean and covariance of observations at x: the noise stands on the diagonal."""
        mean, covariance = self.moments(x)
        return mean, covariance + self.noise_variance * jnp.eye(x.shape[0], dtype=covariance.dtype)


def initialise(key: PRNGKeyArray, dimension: int, architecture: Architecture) -> GaussianProcess:
    """Draw an untrained Gaussian process.

    Args:
      key: random key; the seed of a model draws its weights.
      dimension: d of the inputs.
      architecture: structure and initial values.
    """
    feature_key, mean_key = jax.random.split(key)
    width = architecture.hidden[-1] if architecture.hidden else dimension
    raw_signal_variance, raw_lengthscale, raw_noise_variance = inverse_softplus(
        jnp.array(
            [architecture.signal_variance, architecture.lengthscale, architecture.noise_variance], jnp.float64
        )
    )
    return GaussianProcess(
        features=initialise_mlp(feature_key, dimension, architecture.hidden),
        mean=initialise_mean(mean_key, architecture.mean, width),
        kernel=initialise_kernel(architecture.kernel, width, raw_signal_variance, raw_lengthscale),
        raw_noise_variance=raw_noise_variance,
    )
