"""CTS and CGP: transform, loss and scores against plain NumPy and SciPy, and runs on related tasks."""

from __future__ import annotations

from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata
from transfer_cases import related_tasks, require_learning

from hyperbo.methods import CGP, CTS
from hyperbo.methods.transfer.quantiles import (
    SMALLEST_DEVIATION,
    QuantileTraining,
    normal_scores,
    quantile_loss,
)
from hyperbo.pretrain import Job

pytestmark = pytest.mark.usefixtures("x64")

QUICK = QuantileTraining(hidden=(16,), steps=300)
scores_of = jax.jit(normal_scores)


def scores_by_hand(y: np.ndarray) -> np.ndarray:
    if len(y) == 1:
        return np.zeros(1)
    cut = 1.0 / (4.0 * len(y) ** 0.25 * np.sqrt(np.pi * np.log(len(y))))
    return norm.ppf(np.clip(rankdata(y, "max") / len(y), cut, 1.0 - cut))


@given(y=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_normal_scores_are_the_truncated_quantiles_of_the_ranks(y: list[float]) -> None:
    padded = np.append(y, np.zeros(8 - len(y)))
    found = np.asarray(scores_of(jnp.asarray(padded), jnp.arange(8) < len(y)))
    np.testing.assert_allclose(found[: len(y)], scores_by_hand(np.array(y)), rtol=1e-9, atol=1e-12)
    assert (found[len(y) :] == 0.0).all()


def test_normal_scores_do_not_change_with_the_scale_of_a_task() -> None:
    y, mask = np.random.default_rng(1).normal(size=7), jnp.ones(7, bool)
    found = [scores_of(jnp.asarray(values), mask) for values in (y, np.exp(3.0 * y))]
    np.testing.assert_array_equal(*found)


@pytest.fixture(scope="module")
def learned() -> Any:
    data = related_tasks()
    return data, CTS(QUICK).fit([Job(data, seed) for seed in (0, 1)])


def test_the_loss_is_the_density_of_normal_scores_and_training_lowers_it(learned: Any) -> None:
    data, (model, other) = learned
    x = np.concatenate([task.x for task in data.tasks])
    z = np.concatenate([scores_by_hand(task.y) for task in data.tasks])
    units = reference.features(model, x) @ model.weights + model.biases
    mean, deviation = units[:, 0], reference.softplus(units[:, 1]) + SMALLEST_DEVIATION
    expected = -norm(mean, deviation).logpdf(z).mean() - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(quantile_loss(model, jnp.asarray(x), jnp.asarray(z)), expected, rtol=1e-10)
    # Without the inputs the scores are as uncertain as all of them together.
    assert expected < np.log(z.std()) + 0.5 - 0.3
    assert not np.array_equal(model.biases, other.biases)


def test_cgp_scores_by_the_most_probable_process_of_the_residual(learned: Any) -> None:
    data, (model, _) = learned
    method = CGP(QUICK, lengthscales=(0.3, 0.8), noise_variances=(0.01, 0.2))
    task, picks = data.tasks[0], [3, 7, 3, 11]
    policy = method.policy(model, task)
    state = policy.start(jnp.asarray(task.x), jnp.ones(len(task.y), bool), 6)
    for step, pick in enumerate(picks):
        state = policy.observe(state, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
    scores = jax.jit(policy.score)(state, jnp.asarray(len(picks)), jax.random.key(0))[1]
    mean, deviation = map(np.asarray, model(jnp.asarray(task.x)))
    z, x = scores_by_hand(task.y[picks]), task.x[picks]
    residual = (z - mean[picks]) / deviation[picks]
    found = []
    for lengthscale in (0.3, 0.8):
        for noise in (0.01, 0.2):
            gram = reference.matern52(x, x, np.full(2, lengthscale), 1.0) + noise * np.eye(len(x))
            cross = reference.matern52(x, task.x, np.full(2, lengthscale), 1.0)
            gain = np.linalg.solve(gram, cross)
            density = -0.5 * (residual @ np.linalg.solve(gram, residual) + np.linalg.slogdet(gram)[1])
            variance = 1.0 - (cross * gain).sum(axis=0) + noise
            found.append((density, gain.T @ residual, variance))
    _, of_residual, variance = max(found, key=lambda one: one[0])
    centre, spread = mean + deviation * of_residual, deviation * np.sqrt(variance)
    gain = (centre - z.max()) / spread
    expected = np.log(spread * (norm.pdf(gain) + gain * norm.cdf(gain)))
    np.testing.assert_allclose(scores.values, expected, rtol=1e-6, atol=1e-6)
    assert np.isnan(scores.mean).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", [CTS(QUICK), CGP(QUICK)], ids=["CTS", "CGP"])
def test_ranks_are_transferred_between_tasks_that_resemble_each_other(method: Any) -> None:
    require_learning(method, seeds=4)
