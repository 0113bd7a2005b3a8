from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matched_block
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from hyperbo.errors import InvalidInputError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.estimate import Estimator
from hyperbo.gp.posterior import variance_correction
from hyperbo.gp.table import TablePrior, estimate_table
from hyperbo.objectives import ekl

pytestmark = pytest.mark.usefixtures("x64")

observe = jax.jit(CandidatePosterior.observe)
NOISE = 0.01


def observations(candidates: int, tasks: int, seed: int = 0) -> np.ndarray:
    return matched_block(tuple(map(str, range(tasks))), candidates, seed).y


@pytest.mark.parametrize("estimator", ["mle", "unbiased"])
def test_a_full_rank_table_has_the_sample_moments(estimator: Estimator) -> None:
    y = observations(4, 30)
    mean, covariance = estimate_table(y, NOISE, estimator).noisy_moments()
    expected_mean, expected = y.sum(axis=1) / 30, np.zeros((4, 4))
    divisor = {"mle": 30, "unbiased": 29}[estimator]
    for column in y.T:
        expected += np.outer(column - expected_mean, column - expected_mean) / divisor
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-13)
    np.testing.assert_allclose(covariance, expected, rtol=1e-12, atol=1e-15)


def test_no_other_gaussian_has_a_lower_nll_than_the_table() -> None:
    """Proposition gpexist."""
    y, random = observations(3, 12, seed=1), np.random.default_rng(1)
    mean, covariance = map(np.asarray, estimate_table(y, NOISE).noisy_moments())

    def nll(mean: np.ndarray, covariance: np.ndarray) -> float:
        return -float(multivariate_normal(mean, covariance).logpdf(y.T).mean())

    for size in (1e-3, 1e-1):
        for _ in range(5):
            root = np.linalg.cholesky(covariance) + size * np.tril(random.normal(size=(3, 3)))
            assert nll(mean, root @ root.T) > nll(mean, covariance)
            assert nll(mean + size * random.normal(size=3), covariance) > nll(mean, covariance)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 6))
@settings(max_examples=30)
def test_the_ekl_of_the_table_is_zero_where_the_estimate_has_full_rank(
    seed: int, candidates: int, more: int
) -> None:
    """Proposition gpexist, Eq. (nondegenerate) written out."""
    y = np.random.default_rng(seed).normal(size=(candidates, candidates + 1 + more))
    mean, covariance = map(np.asarray, estimate_table(y, 1e-3).noisy_moments())
    sample = np.atleast_2d(np.cov(y, bias=True))
    trace = np.trace(np.linalg.solve(covariance, sample))
    difference = mean - y.mean(axis=1)
    square = difference @ np.linalg.solve(covariance, difference)
    logs = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(sample)[1]
    rounding = 1e-13 * np.linalg.cond(sample)
    assert 0.5 * (trace + square + logs - candidates) == pytest.approx(0.0, abs=rounding)
    assert ekl(mean, covariance, y) == pytest.approx(0.0, abs=rounding)


@pytest.mark.parametrize(("candidates", "tasks"), [(6, 2), (5, 4), (1, 2)])
def test_a_rank_deficient_table_stays_a_covariance(candidates: int, tasks: int) -> None:
    y = observations(candidates, tasks, seed=2)
    prior = estimate_table(y, NOISE)
    sample = np.atleast_2d(np.cov(y, bias=True))
    spare = min(NOISE, max(np.linalg.eigvalsh(sample)[0], 0.0))
    expected = sample - spare * np.eye(candidates)
    np.testing.assert_allclose(prior.covariance, expected, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(np.asarray(prior.covariance))[0] >= -1e-13
    assert np.linalg.eigvalsh(np.asarray(prior.noisy_moments()[1]))[0] >= 0.99 * NOISE


def test_equal_tasks_leave_the_noise_alone() -> None:
    prior = estimate_table(np.tile([[1.0], [2.0], [-3.0]], 5), NOISE)
    np.testing.assert_array_equal(prior.mean, [1.0, 2.0, -3.0])
    np.testing.assert_array_equal(prior.covariance, np.zeros((3, 3)))


@pytest.mark.parametrize("tasks", [3, 40])
def test_conditioning_on_the_table_is_the_gaussian_conditional(tasks: int) -> None:
    prior = estimate_table(observations(6, tasks, seed=3), NOISE)
    mean, covariance = np.asarray(prior.mean), np.asarray(prior.covariance)
    picks, y = [2, 5, 2, 0, 2], np.random.default_rng(3).normal(size=5)  # one candidate three times
    posterior = prior.unobserved(5)
    for step, (pick, value) in enumerate(zip(picks, y, strict=True)):
        posterior = observe(posterior, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(value))
    noisy = covariance[np.ix_(picks, picks)] + NOISE * np.eye(5)
    gain = covariance[:, picks] @ np.linalg.inv(noisy)
    np.testing.assert_allclose(posterior.mean, mean + gain @ (y - mean[picks]), rtol=1e-9, atol=1e-11)
    expected = np.diag(covariance - gain @ covariance[picks])
    np.testing.assert_allclose(posterior.variance, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("y", "noise_variance", "message"),
    [
        (np.ones((3, 1)), NOISE, "3 candidates on 1 tasks have no sample covariance"),
        (np.ones((0, 4)), NOISE, "0 inputs on 4 tasks have no mean"),
        (np.array([[0.0, np.nan]]), NOISE, "y has a value that is not finite"),
        (np.ones((2, 2)), 0.0, "noise_variance = 0.0 is not positive"),
    ],
)
def test_a_table_that_cannot_be_is_refused(y: np.ndarray, noise_variance: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        estimate_table(y, noise_variance)


# The variance correction


def test_rescaling_makes_the_posterior_variance_of_the_table_unbiased() -> None:
    """Theorem posterior_bound, by simulation: N = 9 tasks, three candidates observed, a fourth predicted."""
    random, tasks, draws = np.random.default_rng(4), 9, 4000
    root = np.tril(random.normal(size=(4, 4))) + np.eye(4)
    truth = root @ root.T
    true_variance = truth[3, 3] - truth[3, :3] @ np.linalg.solve(truth[:3, :3], truth[:3, 3])
    y = np.einsum("ij,djn->din", root, random.normal(size=(draws, 4, tasks)))
    noise = 1e-9  # below every smallest eigenvalue: the noisy covariance is the estimate
    centred = y - y.mean(axis=2, keepdims=True)
    estimates = centred @ centred.transpose(0, 2, 1) / tasks

    def predict(covariance: jax.Array) -> jax.Array:
        prior = TablePrior(jnp.zeros(4), covariance - noise * jnp.eye(4), jnp.asarray(noise))
        posterior = prior.unobserved(3)
        for step in range(3):
            posterior = posterior.observe(jnp.asarray(step), jnp.asarray(step), jnp.asarray(0.0))
        return variance_correction(tasks, observations=3) * (posterior.variance[3] + noise)

    found = np.asarray(jax.jit(jax.vmap(predict))(jnp.asarray(estimates)))
    error = found.std() / np.sqrt(draws)
    # Without the correction the ratio is (N - t) / N = 5 / 9.
    assert abs(found.mean() - true_variance) < 5.0 * error
    assert error < 0.02 * true_variance
