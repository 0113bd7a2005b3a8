"""RFGP: Bayesian optimization with a Gaussian process of all tasks, approximated by random features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Float64, Int32, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import require_positive
from hyperbo.gp.numerics import factorise, inverse_softplus, softplus
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.multi_task.fit import FittedSurrogate, fit_surrogate
from hyperbo.methods.multi_task.model import MultiTaskTraining
from hyperbo.methods.multi_task.policy import MultiTaskPolicy
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class RandomFeatures:
    r"""Random Fourier features of a squared exponential kernel, Rahimi and Recht, NeurIPS 2007.

    .. math:: \phi(x) = \sqrt{2 / D} \cos(W^\top x + b), \quad
              \mathrm{E}[\phi(x)^\top \phi(x')] = \exp\left(-|x - x'|^2 / 2 \ell^2\right)

    Attributes:
      frequencies: W, drawn from N(0, 1 / l^2).
      phases: b, uniform on [0, 2 pi).
    """

    frequencies: Float32[Array, "i f"]
    phases: Float32[Array, " f"]

    def __call__(self, x: Float32[Array, "*n i"]) -> Float32[Array, "*n f"]:
        """Features of inputs, one row per input."""
        scale = math.sqrt(2.0 / len(self.phases))
        return scale * jnp.cos(x @ self.frequencies + self.phases)


@pytree
class RFGPParameters:
    """What Adam trains: weights of the features, their maximum a posteriori estimate, and the noise variance
    of the standardised observations, before softplus.
    """

    weights: Float32[Array, " f"]
    raw_noise_variance: Float32[Array, ""]


@dataclass(frozen=True)
class RFGP:
    """Settings of RFGP, section 7.2 "Description of All Compared Methods".

    The random features are those of Liu et al., "Simple and principled uncertainty estimation with
    deterministic deep learning via distance awareness" (NeurIPS 2020, SNGP), which the paper uses: weights by
    gradient descent, their covariance from a precision matrix over all observations. The paper calls the
    model Bayesian linear regression (section 7.4.4 "Effects of the Number of Training Tasks"), and so is it
    here: given embeddings and noise variance, which Adam trains together with the weights, the mean too is
    that of the exact posterior, to which the weights would come if Adam had converged.

    Attributes:
      training: of the model and the task embeddings.
      learning_rate: of Adam.
      features: random features; 1024 in SNGP.
      lengthscale: of the kernel, for inputs of variance 1; 2.0 in SNGP's published experiments.
      ridge_penalty: noise variance that training starts from, in units of that of the standardised y: added
        to the precision it is SNGP's ridge penalty, 1.0 in its published experiments.
      decision: how candidates are chosen.
    """

    training: MultiTaskTraining = field(default_factory=MultiTaskTraining)
    learning_rate: float = 1e-3
    features: int = 1024
    lengthscale: float = 2.0
    ridge_penalty: float = 1.0
    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)

    def __post_init__(self) -> None:
        self.decision.require_no_correction("RFGP")
        require_positive(self, "learning_rate", "features", "lengthscale", "ridge_penalty")

    @property
    def draws(self) -> int:
        """One minibatch per step."""
        return 1

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[FittedSurrogate]:
        """Train one model per job on all its tasks."""
        return fit_surrogate(self, jobs, progress)

    def policy(self, fitted: FittedSurrogate, task: Task) -> MultiTaskPolicy:
        """Bayesian optimization with the model; of the test task it uses the observations only."""
        return MultiTaskPolicy(fitted, self)

    def initialise(self, key: PRNGKeyArray, inputs: int) -> tuple[RFGPParameters, RandomFeatures]:
        """Zero weights, and random features that stay as they are drawn."""
        frequency_key, phase_key = jax.random.split(key)
        normal = jax.random.normal(frequency_key, (inputs, self.features), jnp.float32)
        phases = jax.random.uniform(phase_key, (self.features,), jnp.float32, maxval=2.0 * math.pi)
        noise_variance = inverse_softplus(jnp.asarray(self.ridge_penalty, jnp.float32))
        weights = jnp.zeros(self.features, jnp.float32)
        return RFGPParameters(weights, noise_variance), RandomFeatures(normal / self.lengthscale, phases)

    def loss(
        self,
        parameters: RFGPParameters,
        constants: RandomFeatures,
        inputs: Float32[Array, "1 b i"],
        y: Float32[Array, "1 b"],
        mask: Bool[Array, " b"],
        count: Int32[Array, ""],
    ) -> Float32[Array, ""]:
        r"""Negative log posterior density of the weights over the number of observations, up to a constant.

        .. math:: \frac{1}{b} \sum_i \left( \frac{(y_i - \phi_i^\top \beta)^2}{2 \sigma^2}
                  + \frac12 \ln \sigma^2 \right) + \frac{|\beta|^2}{2 n}
        """
        noise_variance = softplus(parameters.raw_noise_variance)
        residuals = y[0] - constants(inputs[0]) @ parameters.weights
        terms = 0.5 * (residuals**2 / noise_variance + jnp.log(noise_variance))
        return jnp.mean(terms, where=mask) + 0.5 * jnp.sum(parameters.weights**2) / count

    def predict(
        self,
        parameters: RFGPParameters,
        constants: RandomFeatures,
        inputs: Float32[Array, "n i"],
        y: Float32[Array, " n"],
        mask: Bool[Array, " n"],
        at: Float32[Array, "c i"],
    ) -> tuple[Float64[Array, " c"], Float64[Array, " c"]]:
        """Bayesian linear regression on the features of all observations."""
        noise_variance = softplus(parameters.raw_noise_variance).astype(jnp.float64)
        features, at_features = (constants(x).astype(jnp.float64) for x in (inputs, at))
        mean, variance = bayesian_linear_regression(
            features, y.astype(jnp.float64), mask, noise_variance, at_features
        )
        return mean, variance + noise_variance


def bayesian_linear_regression(
    features: Float64[Array, "n f"],
    y: Float64[Array, " n"],
    mask: Bool[Array, " n"],
    noise_variance: Float64[Array, ""],
    at: Float64[Array, "c f"],
) -> tuple[Float64[Array, " c"], Float64[Array, " c"]]:
    r"""Mean and variance of the function under weights of prior N(0, I), by the precision of the weights.

    .. math:: P = I + \Phi^\top \Phi / \sigma^2, \quad
              \phi^\top P^{-1} \Phi^\top y / \sigma^2, \quad \phi^\top P^{-1} \phi

    Phi are the features of the observations, the rows of the mask, and phi those to predict `at`.
    """
    seen = jnp.where(mask[:, None], features, 0.0)
    count = features.shape[1]
    precision = jnp.eye(count, dtype=features.dtype) + seen.T @ seen / noise_variance
    inverse_factor = factorise(precision, jnp.ones(count, bool)).inverse_factor
    whitened = inverse_factor @ at.T
    mean = (inverse_factor @ (seen.T @ y)) @ whitened / noise_variance
    return mean, jnp.sum(whitened**2, axis=0)
