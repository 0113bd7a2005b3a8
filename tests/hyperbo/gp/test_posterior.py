from __future__ import annotations

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import random_gp

from hyperbo.acquisition.functions import pi_target, probability_of_improvement
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.posterior import predict
from hyperbo.gp.table import TablePrior
from hyperbo.methods import GPPolicy, prior_in_use

pytestmark = pytest.mark.usefixtures("x64")

CANDIDATES = 9
observe = jax.jit(CandidatePosterior.observe)
predict_compiled = jax.jit(predict)


def test_moments_are_the_formulas() -> None:
    gp, x = random_gp(0), np.random.default_rng(0).random((5, 2))
    mean, covariance = gp.noisy_moments(jnp.asarray(x))
    np.testing.assert_allclose(mean, reference.mean(gp, x), rtol=1e-12)
    np.testing.assert_allclose(covariance, reference.noisy_covariance(gp, x), rtol=1e-11)


@pytest.mark.parametrize("raw_noise_variance", [0.0, -16.0])  # variances ln 2 and 1e-7
@pytest.mark.parametrize("of_table", [False, True], ids=["of the kernel", "of a table"])
def test_one_observation_at_a_time_is_the_batch_posterior(of_table: bool, raw_noise_variance: float) -> None:
    random = np.random.default_rng(1)
    gp, candidates = random_gp(1, raw_noise_variance=raw_noise_variance), random.random((CANDIDATES, 2))
    picks = [4, 0, 4, 4, 8, 2, 0]  # with repeats
    y = reference.mean(gp, candidates)[picks] + random.normal(size=len(picks))
    posterior = CandidatePosterior.of(gp, jnp.asarray(candidates), len(picks) + 2)
    if of_table:
        moments = gp.moments(jnp.asarray(candidates))
        posterior = TablePrior(*moments, gp.noise_variance).unobserved(len(picks) + 2)
    for step in range(len(picks) + 1):
        mean, variance = reference.posterior(gp, candidates[picks[:step]], y[:step], candidates)
        # A variance is a difference of numbers of size 1; repeats divide its rounding by the noise.
        tolerance = 1e-10 if raw_noise_variance == 0.0 else 1e-6
        np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=tolerance * max(1.0, abs(mean).max()))
        np.testing.assert_allclose(posterior.variance, variance, rtol=0, atol=tolerance)
        assert (np.asarray(posterior.variance) >= 0.0).all()
        if step < len(picks):
            posterior = observe(posterior, jnp.asarray(step), jnp.asarray(picks[step]), jnp.asarray(y[step]))


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_predict_is_the_batch_posterior_whatever_the_padding(count: int) -> None:
    random = np.random.default_rng(2)
    gp, at = random_gp(2), random.random((CANDIDATES, 2))
    x, y = random.random((6, 2)), random.normal(size=6)
    mask = np.zeros(6, bool)
    mask[random.permutation(6)[:count]] = True
    mean, variance = predict_compiled(gp, *map(jnp.asarray, (x, np.where(mask, y, 1e6), mask, at)))
    expected_mean, expected_variance = reference.posterior(gp, x[mask], y[mask], at)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-10, atol=1e-11)


def test_probability_of_improvement_includes_the_noise_and_the_threshold() -> None:
    random = np.random.default_rng(3)
    mean, variance, noise = random.normal(size=4), random.random(4), 0.3
    arguments = (jnp.asarray(mean), jnp.asarray(variance), jnp.asarray(noise))
    scores = probability_of_improvement(*arguments, jnp.asarray(1.2))
    np.testing.assert_allclose(scores, (mean - (1.2 + 0.1)) / np.sqrt(variance + noise), rtol=1e-14)
    # Before any observation the value to exceed is 0, without the threshold.
    scores = probability_of_improvement(*arguments, jnp.asarray(-jnp.inf))
    np.testing.assert_allclose(scores, mean / np.sqrt(variance + noise), rtol=1e-14)
    assert float(pi_target(jnp.asarray(-3.0))) == pytest.approx(-2.9, rel=1e-14)


def test_a_policy_scores_by_the_best_observation_not_the_last() -> None:
    candidates = np.random.default_rng(4).random((CANDIDATES, 2))
    gp = random_gp(4)
    policy = GPPolicy(prior_in_use(gp, training_tasks=3))
    state = policy.start(jnp.asarray(candidates), jnp.ones(CANDIDATES, bool), 2)
    for step, (candidate, y) in enumerate([(3, 0.7), (5, -1.0)]):
        state = policy.observe(state, jnp.asarray(step), jnp.asarray(candidate), jnp.asarray(y))
    _, scores = policy.score(state, jnp.asarray(2), jax.random.key(0))
    mean, variance = reference.posterior(gp, candidates[[3, 5]], np.array([0.7, -1.0]), candidates)
    expected = (mean - 0.8) / np.sqrt(variance + reference.noise_variance(gp))
    np.testing.assert_allclose(scores.values, expected, rtol=1e-9)
