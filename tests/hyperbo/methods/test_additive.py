"""H-Add: its mixture against dense formulas, its prior's file, and tasks unlike those of the prior."""

from __future__ import annotations

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, random_gp, tuning_data
from scipy.stats import multivariate_normal, norm
from transfer_cases import related_tasks, require_learning

from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HNLL, HAdd, prior_in_use
from hyperbo.pretrain import Job, NLLTraining

pytestmark = pytest.mark.usefixtures("x64")

GRID = HAdd(amplitudes=(0.5, 1.0), free_variances=(0.3, 2.0), lengthscales=(0.2, 0.7))
PICKS = [2, 5, 2]


def test_the_mixture_is_that_of_dense_formulas() -> None:
    task, gp = tuning_data((8,), seed=5).tasks[0], random_gp(1)
    policy = GRID.policy(prior_in_use(gp, 3), task)
    mask, observe = np.arange(10) < 8, jax.jit(policy.observe)
    padded = np.vstack([task.x, np.zeros((2, SPACE.dimension))])
    state = jax.jit(policy.start, static_argnums=2)(jnp.asarray(padded), jnp.asarray(mask), 4)
    for step, pick in enumerate(PICKS):
        state = observe(state, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
    scores = jax.jit(policy.score)(state, jnp.asarray(3), jax.random.key(0))[1]
    pretrained, noise, y = (
        reference.covariance(gp, task.x, task.x),
        reference.noise_variance(gp),
        task.y[PICKS],
    )
    evidences, means, variances = [], [], []
    for amplitude in (0.5, 1.0):
        for relative in (0.3, 2.0):
            for lengthscale in (0.2, 0.7):
                free = relative * np.diag(pretrained).mean()
                covariance = amplitude * pretrained + reference.matern52(
                    task.x, task.x, np.full(2, lengthscale), free
                )
                noisy = covariance[np.ix_(PICKS, PICKS)] + noise * np.eye(3)
                prior = reference.mean(gp, task.x)
                gain = np.linalg.solve(noisy, covariance[PICKS])
                evidences.append(multivariate_normal(prior[PICKS], noisy).logpdf(y))
                means.append(prior + gain.T @ (y - prior[PICKS]))
                variances.append(np.diag(covariance) - (covariance[PICKS] * gain).sum(axis=0))
    np.testing.assert_allclose(state.log_evidence, evidences, rtol=1e-8)
    weights = np.exp(evidences - np.max(evidences))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    deviation = np.sqrt(weights @ (np.array(variances) + np.array(means) ** 2) - mean**2 + noise)
    np.testing.assert_allclose(scores.mean[:8], mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scores.deviation[:8], deviation, rtol=1e-7)
    z = (mean - y.max()) / deviation
    expected = np.log(deviation * (norm.pdf(z) + z * norm.cdf(z)))
    np.testing.assert_allclose(scores.values[:8], expected, rtol=1e-6)


TRAINING = NLLTraining(300, points_per_task=20, learning_rate=0.01, steps_per_call=100)
SMALL = HAdd(Architecture((8,)), TRAINING)


def test_its_prior_is_that_of_h_nll() -> None:
    assert SMALL.trained_as == HNLL(Architecture((8,)), TRAINING)
    assert HNLL().trained_as == HNLL()


@pytest.mark.slow
def test_h_add_learns_from_tasks_that_resemble_each_other() -> None:
    require_learning(SMALL)


@pytest.mark.slow
def test_h_add_leaves_a_prior_that_is_wrong() -> None:
    """On a task whose best inputs are the worst of the training tasks, it is ahead of the prior alone."""
    data = related_tasks()
    task = data.tasks[0]
    reversed_task = reference.make_task("reversed", "d", task.x, -4.0 * task.y)
    job = Job(data.with_tasks(data.tasks[1:]), 0)
    regrets = {}
    for method in (SMALL, HNLL(Architecture((8,)), TRAINING, SMALL.decision)):
        run = Run(method.policy(method.fit([job])[0], reversed_task), reversed_task, 0)
        (choices,) = simulate([run], 12, repeats=False).choices
        regrets[type(method)] = reversed_task.y.max() - np.maximum.accumulate(reversed_task.y[choices])
    assert regrets[HAdd].sum() < regrets[HNLL].sum()
