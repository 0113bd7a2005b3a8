"""EM for mean and covariance: the likelihood never falls, and a step is that of a plain loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from hyperbo.gp.em import EmpiricalMoments, em_step

pytestmark = pytest.mark.usefixtures("x64")

INPUTS, TASKS = 4, 5
step = jax.jit(em_step)


def case(seed: int, missing: float) -> Any:
    """Moments to start from, observations, which are there, and the prior covariance."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(2, INPUTS, INPUTS))
    start, prior = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(INPUTS)
    y = random.normal(size=(TASKS, INPUTS)) @ root[0] + random.normal(size=INPUTS)
    return random.normal(size=INPUTS), start, y, random.random(y.shape) >= missing, prior


def iterate(mean: Any, covariance: Any, y: Any, seen: Any, noise: float, prior: Any, tasks: float) -> Any:
    moments = EmpiricalMoments(jnp.asarray(mean), jnp.asarray(covariance))
    arrays = (y, seen, np.float64(noise), prior, np.float64(tasks))
    found = step(moments, *map(jnp.asarray, arrays))
    return np.asarray(found.mean), np.asarray(found.covariance)


def penalised_likelihood(
    mean: Any, covariance: Any, y: Any, seen: Any, noise: float, prior: Any, tasks: float
) -> float:
    value = -0.5 * tasks * (np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, prior)))
    for values, inside in zip(y, seen, strict=True):
        if inside.any():
            noisy = covariance[np.ix_(inside, inside)] + noise * np.eye(inside.sum())
            value += multivariate_normal(mean[inside], noisy).logpdf(values[inside])
    return float(value)


@given(
    seed=st.integers(0, 1000),
    missing=st.sampled_from([0.0, 0.3, 0.7]),
    noise=st.sampled_from([0.01, 0.5]),
    tasks=st.sampled_from([0.5, 5.0]),
)
def test_the_likelihood_of_what_is_observed_never_falls(
    seed: int, missing: float, noise: float, tasks: float
) -> None:
    mean, covariance, y, seen, prior = case(seed, missing)
    if not seen.any():
        return
    before = penalised_likelihood(mean, covariance, y, seen, noise, prior, tasks)
    for _ in range(4):
        mean, covariance = iterate(mean, covariance, y, seen, noise, prior, tasks)
        after = penalised_likelihood(mean, covariance, y, seen, noise, prior, tasks)
        assert after >= before - 1e-8 * abs(before)
        before = after


def test_one_step_on_complete_data_without_noise_is_the_sample_mean_and_covariance() -> None:
    start_mean, start, y, _, prior = case(0, 0.0)
    mean, covariance = iterate(start_mean, start, y, np.ones(y.shape, bool), 1e-12, prior, 0.0)
    np.testing.assert_allclose(mean, y.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(covariance, np.cov(y.T, bias=True), atol=1e-8)


def test_a_step_is_that_of_a_plain_loop_and_ignores_what_is_not_seen() -> None:
    start_mean, start, y, seen, prior = case(3, 0.4)
    means, spreads = [], []
    for values, inside in zip(y, seen, strict=True):
        cross = start[:, inside]
        inverse = np.linalg.inv(start[np.ix_(inside, inside)] + 0.2 * np.eye(inside.sum()))
        means.append(start_mean + cross @ inverse @ (values[inside] - start_mean[inside]))
        spreads.append(start - cross @ inverse @ cross.T)
    mean = np.mean(means, axis=0)
    total = sum(s + np.outer(m - mean, m - mean) for m, s in zip(means, spreads, strict=True))
    # A task that was observed nowhere is padding.
    padded = np.vstack([np.where(seen, y, 1e6), np.zeros(INPUTS)]), np.vstack([seen, np.zeros(INPUTS, bool)])
    found = iterate(start_mean, start, *padded, 0.2, prior, 3.0)
    np.testing.assert_allclose(found[0], mean, rtol=1e-10)
    np.testing.assert_allclose(found[1], (total + 3.0 * prior) / (TASKS + 3.0), rtol=1e-10)
