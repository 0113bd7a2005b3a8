from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from hyperbo.gp.numerics import inverse_softplus
from hyperbo.methods.multi_task.model import MultiTaskTraining
from hyperbo.methods.multi_task.rfgp import RFGP, RandomFeatures, RFGPParameters, bayesian_linear_regression

pytestmark = pytest.mark.usefixtures("x64")
RANDOM = np.random.default_rng(0)
INPUTS, AT = RANDOM.normal(size=(2, 12, 3))
Y, MASK, NOISE = RANDOM.normal(size=12), RANDOM.random(12) < 0.7, 0.09


# Random features


@pytest.mark.parametrize("count", [256, 16384])
def test_features_approximate_the_squared_exponential_kernel(count: int) -> None:
    _, features = RFGP(features=count, lengthscale=1.5).initialise(jax.random.key(count), 3)
    phi = np.asarray(features(jnp.asarray(INPUTS, jnp.float32)), float)
    squared = ((INPUTS[:, None] - INPUTS[None]) ** 2).sum(axis=2)
    errors = np.abs(phi @ phi.T - np.exp(-0.5 * squared / 1.5**2))
    # A product of two features, times their number, has at most the variance 3/2.
    assert errors.max() < 5.0 * np.sqrt(1.5 / count)
    assert errors.max() > 0.1 / np.sqrt(count)  # an approximation, whose error falls as fast and no faster


def test_features_of_the_formula() -> None:
    frequencies, phases = RANDOM.normal(size=(3, 8)), RANDOM.normal(size=8)
    features = RandomFeatures(jnp.asarray(frequencies, jnp.float32), jnp.asarray(phases, jnp.float32))
    expected = np.sqrt(2 / 8) * np.cos(INPUTS @ frequencies + phases)
    np.testing.assert_allclose(features(jnp.asarray(INPUTS, jnp.float32)), expected, rtol=0, atol=1e-5)


# Bayesian linear regression


def function_space_posterior(phi: Any, at: Any, y: Any, noise: float) -> tuple[Any, Any]:
    """The Gaussian process with the kernel phi^T phi, by a dense solve in the space of observations."""
    gram = phi @ phi.T + noise * np.eye(len(phi))
    cross = phi @ at.T
    solved = np.linalg.solve(gram, cross)
    return solved.T @ y, (at**2).sum(axis=1) - (cross * solved).sum(axis=0)


@pytest.mark.parametrize("count", [4, 30])  # fewer and more features than observations
def test_regression_is_the_gaussian_process_of_its_features(count: int) -> None:
    phi, at = RANDOM.normal(size=(2, 12, count))
    found = bayesian_linear_regression(*map(jnp.asarray, (phi, Y, MASK, np.float64(NOISE), at)))
    expected = function_space_posterior(phi[MASK], at, Y[MASK], NOISE)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


MODEL = RFGP(features=40, lengthscale=1.5)


@pytest.fixture(scope="module")
def features() -> RandomFeatures:
    return MODEL.initialise(jax.random.key(1), 3)[1]


@pytest.fixture(scope="module")
def phi(features: RandomFeatures) -> Any:
    return np.asarray(features(jnp.asarray(INPUTS, jnp.float32)), float)


def parameters(weights: Any, noise: float) -> RFGPParameters:
    raw = inverse_softplus(jnp.asarray(noise, jnp.float32))
    return RFGPParameters(jnp.asarray(weights, jnp.float32), raw)


def loss(features: RandomFeatures, parameters: RFGPParameters) -> Any:
    """Over a batch that holds all observations, so that it is the exact posterior density's."""
    inputs, y = jnp.asarray(INPUTS, jnp.float32)[None], jnp.asarray(Y, jnp.float32)[None]
    return MODEL.loss(parameters, features, inputs, y, jnp.asarray(MASK), jnp.asarray(MASK.sum(), jnp.int32))


def test_prediction_is_the_posterior_of_an_observation(features: RandomFeatures, phi: Any) -> None:
    inputs, at, y = (jnp.asarray(array, jnp.float32) for array in (INPUTS, AT, Y))
    # The weights that Adam is at take no part: the mean is the exact one.
    trained = parameters(RANDOM.normal(size=40), NOISE)
    mean, variance = MODEL.predict(trained, features, inputs, y, jnp.asarray(MASK), at)
    phi_at = np.asarray(features(at), float)
    expected_mean, expected_variance = function_space_posterior(phi[MASK], phi_at, Y[MASK], NOISE)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(variance, expected_variance + NOISE, rtol=1e-5)


def test_loss_is_the_negative_log_posterior_of_the_weights(features: RandomFeatures, phi: Any) -> None:
    differences = []
    for noise in (0.05, 0.4, 2.0):
        weights = RANDOM.normal(size=40)
        density = norm.logpdf(Y[MASK], phi[MASK] @ weights, np.sqrt(noise)).sum() + norm.logpdf(weights).sum()
        differences.append(float(loss(features, parameters(weights, noise))) + density / MASK.sum())
    np.testing.assert_allclose(differences, differences[0], rtol=1e-4)


def test_adam_descends_to_the_mean_that_is_predicted(features: RandomFeatures, phi: Any) -> None:
    seen = phi[MASK]
    exact = np.linalg.solve(seen.T @ seen + NOISE * np.eye(40), seen.T @ Y[MASK])
    gradient, elsewhere = (
        jax.grad(lambda p: loss(features, p))(parameters(weights, NOISE)).weights
        for weights in (exact, np.zeros(40))
    )
    assert np.abs(gradient).max() < 1e-5 < 1e-2 < np.abs(elsewhere).max()


# Settings


def test_settings_are_those_of_the_paper_and_of_sngp() -> None:
    settings = RFGP()
    assert (settings.learning_rate, settings.training) == (1e-3, MultiTaskTraining(1000, 1000, 64, 5))
    assert (settings.features, settings.lengthscale, settings.ridge_penalty) == (1024, 2.0, 1.0)
    trained, constants = jax.eval_shape(lambda key: settings.initialise(key, 9), jax.random.key(0))
    assert constants.frequencies.shape == (9, 1024)
    assert {leaf.dtype for leaf in jax.tree.leaves((trained, constants))} == {jnp.dtype("float32")}
