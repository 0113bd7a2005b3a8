"""RGPE: losses and weights against plain loops, and runs on tasks that resemble each other."""

from __future__ import annotations

from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transfer_cases import related_tasks, require_learning

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods import RGPE
from hyperbo.methods.transfer.ranking import (
    added_ranking_loss,
    ensemble_weights,
    left_out_ranking_loss,
    left_out_samples,
)
from hyperbo.methods.transfer.task_models import (
    TaskPosteriors,
    add_factor_rows,
    fit_task_models,
    standardised,
)
from hyperbo.pretrain import Job, TaskGP, no_progress

pytestmark = pytest.mark.usefixtures("x64")

QUICK = TaskGP(RGPE().task_gp.architecture, points=20, iterations=30)
RANDOM = np.random.default_rng(0)


def test_losses_count_the_pairs_in_the_wrong_order() -> None:
    samples, y = RANDOM.integers(0, 4, (5, 4, 4)) * 1.0, np.array([1.0, 3.0, 2.0, 2.0])
    mask = np.array([True, True, False, True])
    rows = [j for j in range(4) if mask[j]]

    def wrong(one: np.ndarray) -> int:
        return sum((one[j, j] < one[j, k]) != (y[j] < y[k]) for j in rows for k in rows)

    found = left_out_ranking_loss(*map(jnp.asarray, (samples, y, mask)))
    np.testing.assert_array_equal(found, [wrong(one) for one in samples])


def test_losses_grow_by_the_pairs_of_each_observation() -> None:
    samples, y = RANDOM.integers(0, 4, (2, 5, 4)) * 1.0, np.array([1.0, 3.0, 2.0, 2.0])
    grown = sum(added_ranking_loss(jnp.asarray(samples), jnp.asarray(y), jnp.asarray(t)) for t in range(3))

    def wrong(one: np.ndarray) -> int:
        return sum((one[j] < one[k]) != (y[j] < y[k]) for j in range(3) for k in range(3))

    np.testing.assert_array_equal(grown, [[wrong(one) for one in of_model] for of_model in samples])


def test_draws_without_an_observation_have_the_moments_of_the_process_without_it() -> None:
    """The draws are affine in standard normal numbers, so that their moments follow exactly."""
    gp = GaussianProcess.from_values(lengthscales=[0.4, 0.9], signal_variance=1.3, noise_variance=0.2)
    x, y, count = RANDOM.random((4, 2)), RANDOM.normal(size=4), 4
    covariance = np.asarray(gp.kernel(jnp.asarray(x), jnp.asarray(x)))
    noisy = covariance + 0.2 * np.eye(count)
    # First no draw at all, then one for each normal number of prior and noise.
    prior = np.vstack([np.zeros((1, count)), np.linalg.cholesky(covariance).T, np.zeros((count, count))])
    noise = np.vstack([np.zeros((1 + count, count)), np.sqrt(0.2) * np.eye(count)])
    arrays = (prior, noise, y, covariance, np.linalg.inv(noisy))
    found = np.asarray(left_out_samples(*map(jnp.asarray, arrays)))
    for j in range(count):
        kept = [k for k in range(count) if k != j]
        gain = np.linalg.solve(noisy[np.ix_(kept, kept)], covariance[kept])
        np.testing.assert_allclose(found[0, j], gain.T @ y[kept], atol=1e-10)
        directions = found[1:, j] - found[0, j]
        expected = covariance - covariance[kept].T @ gain
        np.testing.assert_allclose(directions.T @ directions, expected, atol=1e-10)


LOSSES = st.lists(st.integers(0, 5), min_size=3, max_size=3)
weights_of, grow = jax.jit(ensemble_weights), jax.jit(add_factor_rows)


@given(
    base=st.lists(LOSSES, min_size=4, max_size=4),
    target=LOSSES,
    count=st.integers(1, 4),
    time_left=st.floats(0.0, 1.0),
)
def test_weights_are_shares_of_lowest_losses(base: Any, target: Any, count: int, time_left: float) -> None:
    losses, own, key = np.array(base, float), np.arange(4) < count, jax.random.key(1)
    arguments = (losses, np.array(target, float), own, np.float64(time_left))
    found = np.asarray(weights_of(key, *map(jnp.asarray, arguments)))
    np.testing.assert_allclose(found.sum(), 1.0)
    assert (found[:-1][~own] == 0.0).all()
    expected = np.zeros(len(found))
    draws = [float(jax.random.uniform(jax.random.fold_in(key, m), (), jnp.float64)) for m in range(count)]
    stays = [m for m in range(count) if draws[m] < time_left * np.mean(losses[m] < np.array(target))]
    for s in range(3):
        of = {**{m: losses[m, s] for m in stays}, len(found) - 1: target[s]}
        best = [m for m in of if of[m] == min(of.values())]
        expected[best] += 1.0 / len(best) / 3.0
    np.testing.assert_allclose(found, expected, atol=1e-12)
    if time_left == 0.0:
        assert found[-1] == 1.0


def test_task_posteriors_and_their_factors_are_those_of_dense_formulas() -> None:
    data = related_tasks(3, 12)
    jobs = [Job(data, 0), Job(data.with_tasks(data.tasks[:2]), 0)]
    models, padded = fit_task_models(QUICK, jobs, no_progress)
    assert np.asarray(padded.own).tolist() == [True, True, False]
    np.testing.assert_allclose(models.scale, np.mean([task.y.std() for task in data.tasks]))
    candidates, chosen = RANDOM.random((6, 2)), [2, 4, 2]
    posteriors = jax.jit(TaskPosteriors.of)(models, jnp.asarray(candidates))
    rows = jnp.zeros((3, 4, 6))
    for step, candidate in enumerate(chosen):
        rows = grow(rows, posteriors, jnp.asarray(step), jnp.asarray(candidate))
    for m, task in enumerate(data.tasks):
        gp = jax.tree.map(lambda leaf, m=m: np.asarray(leaf)[m], models.gps)
        scales = reference.softplus(gp.kernel.raw_lengthscales)
        variance = float(reference.softplus(gp.kernel.raw_signal_variance))
        y = standardised(task).y

        def kernel(a: Any, b: Any, scales: Any = scales, variance: Any = variance) -> Any:
            return reference.matern52(a, b, scales, variance)

        noisy = kernel(task.x, task.x) + reference.noise_variance(gp) * np.eye(len(y))
        gain = np.linalg.solve(noisy, kernel(task.x, candidates))
        joint = kernel(candidates, candidates) - kernel(candidates, task.x) @ gain
        np.testing.assert_allclose(posteriors.mean[m], gain.T @ y, atol=1e-6)
        np.testing.assert_allclose(posteriors.variance[m], np.diag(joint), atol=1e-6)
        of_chosen = joint[np.ix_(chosen, chosen)] + 1e-6 * np.eye(3)
        factor = np.asarray(rows[m][:3])[:, np.array(chosen)]
        # The repeated candidate has the jitter once where both are the same value.
        np.testing.assert_allclose(factor.T @ factor, of_chosen, atol=2e-6)


@pytest.mark.slow
def test_rgpe_learns_from_tasks_that_resemble_each_other() -> None:
    require_learning(RGPE(QUICK, samples=64))


@pytest.mark.slow
def test_a_run_does_not_depend_on_padding() -> None:
    data = related_tasks()
    task, method = data.tasks[0], RGPE(QUICK, samples=16)
    few, many = (Job(data.with_tasks(data.tasks[1:end]), 0) for end in (3, 5))
    alone, beside = method.fit([few])[0], method.fit([few, many])[0]
    found = [
        simulate([Run(method.policy(learned, task), task, 0)], 6).require_usable()
        for learned in (alone, beside)
    ]
    np.testing.assert_array_equal(found[0].choices, found[1].choices)
    np.testing.assert_allclose(found[0].mean, found[1].mean, rtol=1e-6)
