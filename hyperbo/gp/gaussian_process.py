"""GaussianProcess: a prior from features, mean, kernel and noise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.kernels import KERNELS, Kernel, initialise_kernel, kernel_from_values, kernel_values
from hyperbo.gp.kernels import Linear as LinearKernel
from hyperbo.gp.means import MEANS, Mean, initialise_mean, mean_from_values, mean_values
from hyperbo.gp.numerics import double_precision, inverse_softplus, plain_array, softplus


@pytree
class MLP:
    """phi(x): dense layers, each followed by tanh; section 7.2 "Description of All Compared Methods", H-NLL.

    Without a layer it is the identity: mean and kernel are then functions of the inputs.
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n e"]:
        """Features of inputs, one row per input."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = jnp.tanh(x @ weight + bias)
        return x


def initialise_mlp(key: PRNGKeyArray, dimension: int, hidden: Sequence[int]) -> MLP:
    """Draw an MLP: Glorot-normal weights, zero biases, float64. No layer gives the identity."""
    glorot = jax.nn.initializers.glorot_normal()
    sizes = (dimension, *hidden)
    keys = jax.random.split(key, len(hidden))
    pairs = itertools.pairwise(sizes)
    weights = tuple(glorot(k, shape, jnp.float64) for k, shape in zip(keys, pairs, strict=True))
    return MLP(weights, tuple(jnp.zeros(size, jnp.float64) for size in hidden))


@dataclass(frozen=True)
class Architecture:
    """Structure of a Gaussian process; by default an MLP that feeds a linear mean and a Matern 5/2 kernel.

    Section D.3 "Impact of Mean and Kernel Structures" compares `mean` in zero, constant and
    linear, with the default kernel on several `hidden`. ABLR is `kernel="linear"` with `mean="zero"`, FSBO
    the default kernel with `mean="zero"`.

    Attributes:
      hidden: sizes of the tanh layers; (32, 32) is the paper's for PD1. Without a layer, mean and
        kernel are functions of the inputs.
      signal_variance: initial value; for the linear kernel it is b^2, and the dot product has none.
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
        require_positive(self, "signal_variance", "lengthscale", "noise_variance")
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

    @classmethod
    @double_precision
    def from_values(
        cls,
        *,
        lengthscales: ArrayLike,
        signal_variance: float = 1.0,
        noise_variance: float = 0.01,
        kernel: str = "matern52",
        constant: float | None = None,
        weights: ArrayLike | None = None,
        layers: Sequence[tuple[ArrayLike, ArrayLike]] = (),
    ) -> GaussianProcess:
        """A Gaussian process with given parameters, each the value that stands in the formulas.

        Args:
          lengthscales: one per feature, positive; without layers the features are the inputs. For the kernel
            `linear`, which has one scale s for all features, just that one.
          signal_variance: positive; for the kernel `linear` it is b^2; `dot_product` has none.
          noise_variance: sigma^2 of the observations, positive.
          kernel: one of `hyperbo.gp.KERNELS`.
          constant: c of the mean.
          weights: w of a mean that is linear in the features, one per feature. With neither, the mean is 0;
            with both it is w . phi(x) + c.
          layers: weights, one column per unit, and biases of each tanh layer of the features.

        Returns:
          The process, its parameters float64 whatever the default precision of JAX.

        Raises:
          InvalidInputError: a value is not a number, not positive or not finite, shapes do not fit each
            other, or the kernel is unknown.

        >>> gp = GaussianProcess.from_values(lengthscales=[0.3, 2.0], noise_variance=0.1, constant=-1.0)
        >>> gp.values()["lengthscales"].round(12).tolist()
        [0.3, 2.0]
        """
        arrays = {
            name: plain_array(name, value, axes, "GaussianProcess")
            for name, value, axes in (
                ("lengthscales", lengthscales, 1),
                ("signal_variance", signal_variance, 0),
                ("noise_variance", noise_variance, 0),
                ("constant", constant, 0),
                ("weights", weights, 1),
            )
            if value is not None or name not in ("constant", "weights")
        }
        network = [
            (
                plain_array(f"the weights of layer {number}", weight, 2, "GaussianProcess"),
                plain_array(f"the biases of layer {number}", bias, 1, "GaussianProcess"),
            )
            for number, (weight, bias) in enumerate(layers)
        ]
        _check_values(kernel, arrays, network)
        given = {name: jnp.asarray(value) for name, value in arrays.items()}
        mlp = MLP(*(tuple(jnp.asarray(layer[part]) for layer in network) for part in (0, 1)))
        return cls(
            mlp,
            mean_from_values(given.get("constant"), given.get("weights")),
            kernel_from_values(kernel, given["lengthscales"], given["signal_variance"]),
            inverse_softplus(given["noise_variance"]),
        )

    @double_precision
    def values(self) -> dict[str, Any]:
        """The parameters by name, as `from_values` takes them: `from_values(**gp.values())` is `gp` again.

        Returns:
          Numbers, NumPy float64 arrays, the name of the kernel, and None for a part that the mean has not.
        """
        gp = jax.tree.map(jnp.asarray, self)
        kernel, lengthscales, signal_variance = kernel_values(gp.kernel)
        constant, weights = mean_values(gp.mean)
        values = {
            "lengthscales": lengthscales,
            "signal_variance": signal_variance,
            "noise_variance": softplus(gp.raw_noise_variance),
            "kernel": kernel,
            "constant": constant,
            "weights": weights,
            "layers": tuple(zip(gp.features.weights, gp.features.biases, strict=True)),
        }
        return jax.tree.map(_plain, values)

    @property
    def dimension(self) -> int | None:
        """Number d of coordinates of an input; None for the kernel `linear` without layers or weights w."""
        if self.features.weights:
            return len(self.features.weights[0])
        if not isinstance(self.kernel, LinearKernel):
            return len(self.kernel.raw_lengthscales)
        _, weights = mean_values(self.mean)
        return None if weights is None else len(weights)

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


def _plain(value: str | Array) -> Any:
    """A string as it is, one number as a float, an array as NumPy's."""
    return value if isinstance(value, str) else np.asarray(value) if value.ndim else float(value)


def _check_values(
    kernel: str, arrays: dict[str, np.ndarray], layers: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Refuse values of `GaussianProcess.from_values` that make no process."""
    where = "GaussianProcess"
    if kernel not in KERNELS:
        raise InvalidInputError(f"unknown kernel {kernel!r}", where=where, fix=f"use {', '.join(KERNELS)}")
    for name, array in arrays.items():
        if not array.size:
            raise InvalidInputError(f"{name} is empty", where=where, fix="give one number per feature")
        if name not in ("constant", "weights") and not (array > 0.0).all():
            raise InvalidInputError(f"{name} = {array.tolist()} is not positive", where=where)
    if kernel == "dot_product" and arrays["signal_variance"] != 1.0:
        raise InvalidInputError(
            "the kernel 'dot_product' has no signal variance", where=where, fix="set its length scales"
        )
    above = None
    for number, (weight, bias) in enumerate(layers):
        if bias.shape != weight.shape[1:] or above not in (None, weight.shape[0]):
            raise InvalidInputError(
                f"layer {number} has weights of shape {weight.shape} and biases of shape {bias.shape}",
                where=where,
                fix="give weights of shape (units of the layer before, units), and one bias per unit",
            )
        above = len(bias)
    features = {name: len(arrays[name]) for name in ("lengthscales", "weights") if name in arrays}
    if kernel == "linear" and features.pop("lengthscales") != 1:
        raise InvalidInputError("the kernel 'linear' has one length scale for all features", where=where)
    if above is not None:
        features["units of the last layer"] = above
    if len(set(features.values())) > 1:
        raise InvalidInputError(f"the numbers of features differ: {features}", where=where)


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
