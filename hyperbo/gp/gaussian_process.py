"""GaussianProcess: features, mean, kernel and noise put together into a prior."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hyperbo.errors import InvalidInputError
from hyperbo.gp.features import MLP, initialise_mlp
from hyperbo.gp.kernels import Matern52
from hyperbo.gp.means import Linear
from hyperbo.gp.numerics import inverse_softplus, softplus
from hyperbo.gp.pytree import pytree


@dataclass(frozen=True)
class Architecture:
    """Structure of a Gaussian process: an MLP whose last layer feeds a linear mean and a Matern 5/2 kernel.

    Attributes:
      hidden: sizes of the tanh layers; (32, 32) is the paper's for PD1.
      signal_variance: initial value.
      lengthscale: initial value, the same for every feature.
      noise_variance: initial value.
    """

    hidden: tuple[int, ...] = (32, 32)
    signal_variance: float = 1.0
    lengthscale: float = 1.0
    noise_variance: float = 0.01

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise InvalidInputError(
                f"hidden = {self.hidden} has no layer or an empty one", where="Architecture"
            )
        for name in ("signal_variance", "lengthscale", "noise_variance"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)} is not positive", where="Architecture"
                )


@pytree
class GaussianProcess:
    """GP(mu, k) with Gaussian observation noise, mean and kernel both on features of the input."""

    features: MLP
    mean: Linear
    kernel: Matern52
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
    width = architecture.hidden[-1]
    raw_signal_variance, raw_lengthscale, raw_noise_variance = inverse_softplus(
        jnp.array(
            [architecture.signal_variance, architecture.lengthscale, architecture.noise_variance], jnp.float64
        )
    )
    return GaussianProcess(
        features=initialise_mlp(feature_key, dimension, architecture.hidden),
        mean=Linear(jax.random.normal(mean_key, (width,), jnp.float64) / jnp.sqrt(jnp.float64(width))),
        kernel=Matern52(raw_signal_variance, jnp.full(width, raw_lengthscale)),
        raw_noise_variance=raw_noise_variance,
    )
