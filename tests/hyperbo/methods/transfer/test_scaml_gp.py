"""ScaML-GP: its process against dense formulas, its refits, and runs on related tasks."""

from __future__ import annotations

from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gamma, lognorm, multivariate_normal
from transfer_cases import related_tasks, require_learning

from hyperbo.methods import RGPE, ScaMLGP
from hyperbo.methods.transfer.scaml_gp import RESIDUAL
from hyperbo.pretrain import Job, TaskGP

pytestmark = pytest.mark.usefixtures("x64")

QUICK = ScaMLGP(TaskGP(RGPE().task_gp.architecture, points=20, iterations=30))
PICKS = [3, 9, 4, 9]


@pytest.fixture(scope="module")
def observed() -> Any:
    """A policy, the state after observations, and these, standardised and padded."""
    data = related_tasks()
    job = Job(data.with_tasks(data.tasks[1:]), 0)
    task = data.tasks[0]
    policy = QUICK.policy(QUICK.fit([job])[0], task)
    state = jax.jit(policy.start, static_argnums=2)(jnp.asarray(task.x), jnp.ones(len(task.y), bool), 6)
    observe = jax.jit(policy.observe)
    for step, pick in enumerate(PICKS):
        state = observe(state, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
    y = task.y[PICKS]
    y = np.append((y - y.mean()) / y.std(), [0.0, 0.0])
    return policy, state, y, np.arange(6) < len(PICKS)


def dense(policy: Any, state: Any, parameters: Any) -> tuple[Any, Any, Any]:
    """Prior mean, covariance and noise at all candidates, as a sum over tasks."""
    x = np.asarray(state.posteriors.candidates)
    mean, covariance = np.zeros(len(x)), np.zeros((len(x), len(x)))
    for m, weight in enumerate(reference.softplus(parameters.raw_weights)):
        gp = jax.tree.map(lambda leaf, m=m: np.asarray(leaf)[m], policy.models.gps)
        scales = reference.softplus(gp.kernel.raw_lengthscales)
        variance = float(reference.softplus(gp.kernel.raw_signal_variance))
        kept = np.asarray(policy.models.mask)[m]
        at, y = np.asarray(policy.models.x)[m][kept], np.asarray(policy.models.y)[m][kept]
        noisy = reference.matern52(at, at, scales, variance) + reference.noise_variance(gp) * np.eye(len(at))
        gain = np.linalg.solve(noisy, reference.matern52(at, x, scales, variance))
        posterior = (
            reference.matern52(x, x, scales, variance) - reference.matern52(x, at, scales, variance) @ gain
        )
        mean, covariance = mean + weight * (gain.T @ y), covariance + weight**2 * posterior
    residual = parameters.residual
    scales = reference.softplus(residual.kernel.raw_lengthscales)
    variance = float(reference.softplus(residual.kernel.raw_signal_variance))
    return mean, covariance + reference.matern52(x, x, scales, variance), reference.noise_variance(residual)


def log_posterior(policy: Any, state: Any, parameters: Any, y: Any) -> float:
    mean, covariance, noise = dense(policy, state, parameters)
    noisy = covariance[np.ix_(PICKS, PICKS)] + noise * np.eye(len(PICKS))
    kernel = parameters.residual.kernel
    value = multivariate_normal(mean[PICKS], noisy).logpdf(y[: len(PICKS)])
    value += gamma(1.0).logpdf(reference.softplus(parameters.raw_weights)).sum()
    for positive, middle in (
        (reference.softplus(kernel.raw_signal_variance), RESIDUAL.signal_variance),
        (reference.softplus(kernel.raw_lengthscales), RESIDUAL.lengthscale),
        (noise, RESIDUAL.noise_variance),
    ):
        # A density of the ratio, as the penalty is.
        value += np.sum(lognorm(1.0).logpdf(positive / middle))
    return float(value)


def test_the_posterior_is_that_of_the_weighed_sum_of_processes(observed: Any) -> None:
    policy, state, y, seen = observed
    parameters = jax.jit(policy.refitted)(state, jnp.asarray(y), jnp.asarray(seen))
    found = jax.jit(policy.posterior)(parameters, state, jnp.asarray(y), jnp.asarray(seen))
    mean, covariance, noise = dense(policy, state, parameters)
    gain = np.linalg.solve(covariance[np.ix_(PICKS, PICKS)] + noise * np.eye(len(PICKS)), covariance[PICKS])
    np.testing.assert_allclose(found[0], mean + gain.T @ (y[: len(PICKS)] - mean[PICKS]), atol=1e-5)
    variance = np.diag(covariance) - (covariance[PICKS] * gain).sum(axis=0)
    np.testing.assert_allclose(found[1], variance, atol=1e-5)
    # The refit is a maximum of the density: no parameter can be moved to a larger one.
    highest = log_posterior(policy, state, parameters, y)
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, parameters))
    for place, leaf in enumerate(leaves):
        for change in (-0.2, 0.2):
            moved = jax.tree.unflatten(structure, [*leaves[:place], leaf + change, *leaves[place + 1 :]])
            assert log_posterior(policy, state, moved, y) < highest + 1e-3


@pytest.mark.slow
def test_scaml_gp_learns_from_tasks_that_resemble_each_other() -> None:
    require_learning(QUICK)
