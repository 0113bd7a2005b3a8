"""The paper's study of few training functions with many points: Figure 6 and Table 2 (hyperbo_posterior)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Float64, Int

from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import MLP, initialise_mlp
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.means import Constant, Linear
from hyperbo.gp.numerics import cholesky, double_precision, gaussian_nll, inverse_softplus, softplus
from hyperbo.objectives.ekl import ekl
from hyperbo.theory.gaussian import condition, mean_nll

AUGMENTATION_MODELS = ("ground truth GP", "pre-trained GP", "single-task GP")
METRICS = ("NLL", "EKL", "NLL(f)", "NLL(D_f)")
# The paper gives the structures, not these values.
HIDDEN = (8, 8, 8)
LENGTHSCALE, SIGNAL_VARIANCE, NOISE_VARIANCE = 0.3, 1.0, 1e-3
DOMAIN = (-1.0, 1.0)
# Added to every noise variance: on three points the maximum likelihood may lie at no noise at all.
NOISE_FLOOR = 1e-4


class AugmentationStudy(NamedTuple):
    """Three models of functions on an interval, before and after three observations of a test function.

    Attributes:
      x: inputs, shared by all functions.
      training: observations of the training functions, one function per row.
      test: observations of the test function at all inputs.
      observed: which of them the posteriors know, D_f.
      prior_mean: of each of `AUGMENTATION_MODELS`, at each input.
      prior_covariance: of observations, noise included.
      posterior_mean: given D_f.
      posterior_variance: of an observation given D_f, noise included.
      losses: Table 2 (hyperbo_posterior): one row per model, the columns `METRICS`.
      largest_jitter: largest relative jitter that the loss of a fitted model needed; the losses have none.
    """

    x: Float64[np.ndarray, " p"]
    training: Float64[np.ndarray, "n p"]
    test: Float64[np.ndarray, " p"]
    observed: Int[np.ndarray, " t"]
    prior_mean: Float64[np.ndarray, "3 p"]
    prior_covariance: Float64[np.ndarray, "3 p p"]
    posterior_mean: Float64[np.ndarray, "3 p"]
    posterior_variance: Float64[np.ndarray, "3 p"]
    losses: Float64[np.ndarray, "3 4"]
    largest_jitter: float


@pytree
class _Model:
    """A Gaussian process whose mean stands on features, and whose kernel on the inputs."""

    features: MLP
    mean: Linear | Constant
    kernel: Stationary
    raw_noise_variance: Float[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        return NOISE_FLOOR + softplus(self.raw_noise_variance)

    def noisy_moments(self, x: Float[Array, "n 1"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        noise = self.noise_variance * jnp.eye(len(x), dtype=x.dtype)
        return self.mean(self.features(x)), self.kernel(x, x) + noise


@double_precision
def augmentation_study(
    seed: int, training_functions: int = 3, points: int = 200, observations: int = 3, iterations: int = 200
) -> AugmentationStudy:
    """Figure 6 and Table 2 (hyperbo_posterior): many points of a few functions stand in for more functions.

    The ground truth has a linear MLP mean, a Matern 5/2 kernel and noise. The pre-trained GP has the same
    structure but a squared exponential kernel, and minimises NLL; the single-task GP has a constant mean and
    a squared exponential kernel, fitted to the observations of the test function by type-II maximum
    likelihood. Both minimise by L-BFGS on all points.

    Args:
      seed: of all draws.
      training_functions: N.
      points: of each function, evenly spaced; the paper has 200.
      observations: of the test function, drawn from the points.
      iterations: of L-BFGS.

    Raises:
      InvalidInputError: fewer than two training functions, no observation, or more than points.
    """
    if training_functions < 2 or not 1 <= observations <= points:
        raise InvalidInputError(
            f"{training_functions} training functions, {observations} observations of {points} points",
            where="augmentation_study",
        )
    truth_key, start_key = jax.random.split(jax.random.key(seed))
    x = np.linspace(*DOMAIN, points)
    truth = _linear_mlp(truth_key, "matern52")
    mean, covariance = map(np.asarray, truth.noisy_moments(jnp.asarray(x[:, None])))
    random = np.random.default_rng(seed)
    factor = cholesky(covariance, "the covariance of the ground truth")
    functions = mean + random.standard_normal((training_functions + 1, points)) @ factor.T
    training, test = functions[:-1], functions[-1]
    observed = np.sort(random.choice(points, observations, replace=False))
    raw = _raw_parameters()
    kernel = Stationary(raw[0], raw[1:2], "squared_exponential")
    constant = _Model(MLP((), ()), Constant(jnp.zeros(())), kernel, raw[2])
    fits = [
        _fit(_linear_mlp(start_key, "squared_exponential"), x, training, iterations),
        _fit(constant, x[observed], test[None, observed], iterations),
    ]
    models = [truth, *(model for model, _ in fits)]
    rows = [_describe(model, x, training, test, observed) for model in models]
    arrays = map(np.stack, zip(*rows, strict=True))
    largest_jitter = max(jitter for _, jitter in fits)
    return AugmentationStudy(x, training, test, observed, *arrays, largest_jitter=largest_jitter)


def _raw_parameters() -> Float[Array, " parameters"]:
    return inverse_softplus(jnp.array([SIGNAL_VARIANCE, LENGTHSCALE, NOISE_VARIANCE]))


def _linear_mlp(key: Array, correlation: str) -> _Model:
    feature_key, mean_key = jax.random.split(key)
    raw = _raw_parameters()
    weight = jax.random.normal(mean_key, (HIDDEN[-1],), jnp.float64) / np.sqrt(HIDDEN[-1])
    kernel = Stationary(raw[0], raw[1:2], correlation)
    return _Model(initialise_mlp(feature_key, 1, HIDDEN), Linear(weight), kernel, raw[2])


def _fit(
    model: _Model, x: Float64[np.ndarray, " n"], y: Float64[np.ndarray, "f n"], iterations: int
) -> tuple[_Model, float]:
    """Minimise the mean NLL of functions on the same inputs; the jitter that it needs at the end."""
    flat, unravel = ravel_pytree(model)
    inputs, values, mask = jnp.asarray(x[:, None]), jnp.asarray(y), jnp.ones(len(x), bool)

    def loss(flat: Float[Array, " k"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        mean, covariance = unravel(flat).noisy_moments(inputs)
        # Columns over sqrt(N): one factorisation serves all functions.
        return gaussian_nll((values - mean).T / jnp.sqrt(1.0 * len(values)), covariance, mask)

    @jax.jit
    def minimise(start: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, ""]]:
        best, _ = minimise_lbfgs(lambda flat: loss(flat)[0], start, iterations)
        return best, loss(best)[1]

    best, jitter = minimise(flat)
    return unravel(best), float(jitter)


def _describe(
    model: _Model,
    x: Float64[np.ndarray, " p"],
    training: Float64[np.ndarray, "n p"],
    test: Float64[np.ndarray, " p"],
    observed: Int[np.ndarray, " t"],
) -> tuple[np.ndarray, ...]:
    """Prior, posterior and losses of one model, in the order of `AugmentationStudy`."""
    mean, covariance = map(np.asarray, model.noisy_moments(jnp.asarray(x[:, None])))
    noise = float(model.noise_variance)
    kernel = covariance - noise * np.eye(len(x))
    posterior_mean, variance = condition(mean, kernel, noise, observed, test[observed])
    losses = np.array(
        [
            mean_nll(mean, covariance, training),
            ekl(mean, covariance, training.T),
            mean_nll(mean, covariance, test[None]),
            mean_nll(mean[observed], covariance[np.ix_(observed, observed)], test[None, observed]),
        ]
    )
    # A new observation at an observed input has noise of its own.
    return mean, covariance, posterior_mean, variance + noise, losses
