from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import random_structure, softplus, structure_moments
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import inverse_softplus
from hyperbo.gp.posterior import Posterior, condition

pytestmark = pytest.mark.usefixtures("x64")

CAPACITY, QUERIES = 6, 5
DEFAULT = Architecture((3,))
# One of each kind of kernel, on features and on inputs.
STRUCTURES = [
    DEFAULT,
    Architecture((), kernel="matern32", mean="affine"),
    Architecture((3,), kernel="linear", mean="zero"),
]

condition_compiled = jax.jit(condition)
observe = jax.jit(Posterior.observe)
sample = jax.jit(Posterior.sample, static_argnums=2)


@jax.jit
def predictions(posterior: Posterior, at: jax.Array) -> tuple[jax.Array, ...]:
    return (
        posterior.mean(at),
        posterior.variance(at),
        posterior.noisy_variance(at),
        posterior.covariance(at),
    )


def model(architecture: Architecture, noise_variance: float = 0.05) -> GaussianProcess:
    gp = random_structure(5, architecture)
    return replace(gp, raw_noise_variance=inverse_softplus(jnp.asarray(noise_variance)))


def textbook(
    architecture: Architecture, gp: GaussianProcess, x: np.ndarray, y: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of the function, by an explicit inverse."""
    mean_at, prior = structure_moments(architecture, gp, at, at)
    if len(x) == 0:
        return mean_at, prior
    mean_x, observed = structure_moments(architecture, gp, x, x)
    cross = structure_moments(architecture, gp, x, at)[1]
    inverse = np.linalg.inv(observed + float(softplus(gp.raw_noise_variance)) * np.eye(len(x)))
    return mean_at + cross.T @ inverse @ (y - mean_x), prior - cross.T @ inverse @ cross


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations with repeated inputs, and inputs to predict at, some of them observed."""
    random = np.random.default_rng(seed)
    x, y, at = random.random((CAPACITY, 2)), random.normal(size=CAPACITY), random.random((QUERIES, 2))
    x[3], x[4], at[0] = x[1], x[1], x[1]
    return x, y, at


def conditioned(gp: GaussianProcess, x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> Posterior:
    # What stands in the rows that are no observations must not matter.
    return condition_compiled(gp, jnp.asarray(x), jnp.where(mask, y, np.nan), jnp.asarray(mask))


@pytest.mark.parametrize("architecture", STRUCTURES, ids=lambda a: a.kernel)
@pytest.mark.parametrize("count", [0, 1, 4, CAPACITY])
def test_a_posterior_is_that_of_the_textbook(architecture: Architecture, count: int) -> None:
    gp, (x, y, at) = model(architecture), data()
    mask = np.zeros(CAPACITY, bool)
    mask[np.random.default_rng(count).permutation(CAPACITY)[:count]] = True
    posterior = conditioned(gp, x, y, mask)
    mean, variance, noisy_variance, covariance = predictions(posterior, jnp.asarray(at))
    expected_mean, expected = textbook(architecture, gp, x[mask], y[mask], at)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(noisy_variance, np.diag(expected) + 0.05, rtol=1e-10)
    assert float(posterior.jitter) == 0.0


@pytest.mark.parametrize("noise_variance", [0.05, 1e-7])
@pytest.mark.parametrize("begin", [0, 2])
def test_appending_one_observation_at_a_time_is_conditioning_on_all(
    noise_variance: float, begin: int
) -> None:
    gp, (x, y, at) = model(DEFAULT, noise_variance), data(1)
    posterior = conditioned(gp, x, y, np.arange(CAPACITY) < begin)
    for count in range(begin + 1, CAPACITY + 1):
        posterior = observe(posterior, jnp.asarray(x[count - 1]), jnp.asarray(y[count - 1]))
        batch = conditioned(gp, x, y, np.arange(CAPACITY) < count)
        # Repeated inputs divide rounding by the noise.
        tolerance = 1e-12 if noise_variance > 1e-3 else 1e-7
        np.testing.assert_array_equal(posterior.mask, batch.mask)
        scale = np.abs(batch.inverse_factor).max()
        np.testing.assert_allclose(
            posterior.inverse_factor, batch.inverse_factor, rtol=0, atol=tolerance * scale
        )
        assert (np.triu(posterior.inverse_factor, 1) == 0.0).all()
        found, expected = (predictions(each, jnp.asarray(at)) for each in (posterior, batch))
        scale = max(1.0, np.abs(expected[0]).max())
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


def test_observations_fill_the_free_rows_wherever_they_are() -> None:
    gp, (x, y, at) = model(DEFAULT), data(2)
    posterior = conditioned(gp, x, y, np.array([False, True, True, False, True, True]))
    for row in (3, 0):
        posterior = observe(posterior, jnp.asarray(x[row]), jnp.asarray(y[row]))
    mean, _, _, covariance = predictions(posterior, jnp.asarray(at))
    expected_mean, expected = textbook(DEFAULT, gp, x, y, at)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-11)


def test_an_observation_without_room_gives_nan() -> None:
    gp, (x, y, at) = model(DEFAULT), data()
    full = conditioned(gp, x, y, np.ones(CAPACITY, bool))
    for prediction in predictions(observe(full, jnp.asarray(x[0]), jnp.asarray(0.0)), jnp.asarray(at)):
        assert np.isnan(prediction).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, CAPACITY - 1))
@settings(max_examples=30)
def test_an_observation_never_makes_a_variance_larger(seed: int, count: int) -> None:
    gp, (x, y, at) = model(DEFAULT), data(seed)
    before = conditioned(gp, x, y, np.arange(CAPACITY) < count)
    after = observe(before, jnp.asarray(at[1]), jnp.asarray(y[0]))
    first, second = (predictions(posterior, jnp.asarray(at)) for posterior in (before, after))
    assert (second[1] <= np.asarray(first[1]) + 1e-12).all()
    # At the input itself it ends below the noise, wherever it began; the mean moves towards y.
    assert second[1][1] <= 0.05 + 1e-12
    assert abs(float(second[0][1]) - y[0]) <= abs(float(first[0][1]) - y[0]) + 1e-12
    # The covariance that is taken away is positive semi-definite.
    assert np.linalg.eigvalsh(np.asarray(first[3] - second[3]))[0] >= -1e-12


def test_many_posteriors_grow_as_one_alone() -> None:
    gp, (x, y, at) = model(DEFAULT), data(3)
    masks = np.arange(CAPACITY) < np.array([[0], [3], [5]])
    x_new, y_new = jnp.asarray(at[1]), jnp.asarray(0.3)

    def run(mask: jax.Array) -> tuple[jax.Array, ...]:
        grown = condition(gp, jnp.asarray(x), jnp.asarray(y), mask).observe(x_new, y_new)
        return predictions(grown, jnp.asarray(at))

    batch = jax.jit(jax.vmap(run))(jnp.asarray(masks))
    for number, mask in enumerate(masks):
        alone = predictions(observe(conditioned(gp, x, y, mask), x_new, y_new), jnp.asarray(at))
        for of_batch, of_one in zip(batch, alone, strict=True):
            np.testing.assert_allclose(of_batch[number], of_one, rtol=1e-12, atol=1e-13)


# Samples

COUNT = 20_000


@pytest.mark.parametrize("architecture", STRUCTURES, ids=lambda a: a.kernel)
def test_samples_have_the_moments_of_the_posterior(architecture: Architecture) -> None:
    gp, (x, y, at) = model(architecture), data(4)
    mask = np.arange(CAPACITY) < 3
    draws = np.asarray(sample(conditioned(gp, x, y, mask), jax.random.key(0), COUNT, jnp.asarray(at)))
    mean, covariance = textbook(architecture, gp, x[mask], y[mask], at)
    assert draws.shape == (COUNT, QUERIES)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * np.sqrt(variance / COUNT) + 1e-7).all()
    # Var of a sample covariance: (s_ii s_jj + s_ij^2) / count.
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / COUNT)
    assert (np.abs(np.cov(draws.T) - covariance) < 5.0 * error + 1e-7).all()


def test_a_key_draws_the_same_functions_and_another_others() -> None:
    gp, (x, y, at) = model(DEFAULT), data(4)
    posterior = conditioned(gp, x, y, np.arange(CAPACITY) < 3)
    one, same, other = (
        np.asarray(sample(posterior, jax.random.key(seed), 2, jnp.asarray(at))) for seed in (0, 0, 1)
    )
    assert one.tobytes() == same.tobytes()
    assert (one != other).all()
    assert (one[0] != one[1]).all()


@pytest.mark.parametrize("noise_variance", [1e-3, 1e-9, 1e-17])
def test_samples_where_all_is_known_are_the_observations(noise_variance: float) -> None:
    gp, random = model(DEFAULT, noise_variance), np.random.default_rng(5)
    x, y = random.random((CAPACITY, 2)), random.normal(size=CAPACITY)
    posterior = conditioned(gp, x, y, np.ones(CAPACITY, bool))
    at = jnp.asarray(np.repeat(x, 2, axis=0))
    draws = np.asarray(sample(posterior, jax.random.key(0), 50, at))
    # Equal inputs get equal values; where the noise is small, what was observed.
    np.testing.assert_allclose(draws[:, ::2], draws[:, 1::2], rtol=0, atol=1e-4)
    if noise_variance < 1e-3:
        np.testing.assert_allclose(draws[:, ::2], np.tile(y, (50, 1)), rtol=0, atol=1e-3)


def test_a_kernel_that_is_zero_at_the_inputs_samples_the_mean() -> None:
    architecture = Architecture((), kernel="dot_product", mean="constant")
    gp = model(architecture)
    posterior = conditioned(gp, *data()[:2], np.zeros(CAPACITY, bool))
    draws = sample(posterior, jax.random.key(0), 3, jnp.zeros((2, 2)))
    np.testing.assert_allclose(draws, np.full((3, 2), gp.mean.value), rtol=1e-12)
