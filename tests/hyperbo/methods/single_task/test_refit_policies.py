"""STBO, STBOH and fine-tuned priors: a fit of the Gaussian process before each choice."""

from __future__ import annotations

from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import random_gp, tuning_data
from jax.flatten_util import ravel_pytree
from scipy.stats import lognorm, norm

import hyperbo.methods.single_task.refit_policy as refit_policy
from hyperbo.bayesopt.offline import Run, simulate
from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.methods import HNLL, STBO, STBOH, prior_in_use
from hyperbo.methods.single_task.refit_policy import FineTuning, RefitPolicy, RefitState
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import Job

DATA = tuning_data((5, 9, 7), seed=3)
SMALL = STBO(Architecture((2,)), iterations=8)
PICKS = [0, 4, 6]


def stbo_policy(seed: int) -> RefitPolicy:
    (drawn,) = SMALL.fit([Job(DATA, seed)])
    return SMALL.policy(drawn, DATA.tasks[1])


def observed(policy: RefitPolicy, capacity: int) -> RefitState:
    """The state after three observations of a task."""
    task = DATA.tasks[1]
    state = policy.start(jnp.asarray(task.x), jnp.ones(len(task.y), bool), capacity)
    for step, pick in enumerate(PICKS):
        state = policy.observe(state, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
    return state


@jax.jit
def _score(policy: Any, state: RefitState, step: Any) -> Any:
    return policy.score(state, step, jax.random.key(0))[1]


def score(policy: Any, state: Any, step: int) -> Any:
    """A policy's scores after `step` observations."""
    return jax.tree.map(np.asarray, _score(policy, state, jnp.asarray(step)))


def log_prior(gp: GaussianProcess) -> float:
    positive = np.append(gp.kernel.raw_lengthscales, gp.kernel.raw_signal_variance)
    return float(
        lognorm(s=0.1).logpdf(reference.softplus(positive)).sum()
        + norm(0.0, 0.1).logpdf(reference.noise_variance(gp))
    )


def test_stbos_penalty_is_the_negative_log_prior_up_to_a_constant() -> None:
    with jax.enable_x64(True):
        models = [random_gp(seed, raw_noise_variance=raw) for seed, raw in enumerate((-3.0, -1.0, 2.0))]
        found = np.array([float(SMALL.penalty(model)) for model in models])
    sums = found + [log_prior(model) for model in models]
    np.testing.assert_allclose(sums, sums[0], rtol=1e-10)


@pytest.fixture(scope="module")
def refits() -> Any:
    """STBO as drawn, its state after three observations, its scores then with buffers of 4 and of 8 rows."""
    with jax.enable_x64(True):
        policy = stbo_policy(seed=1)
        return policy, [score(policy, observed(policy, size), 3) for size in (4, 8)]


def test_a_refit_is_the_maximum_of_the_posterior_density(refits: Any) -> None:
    policy, (scores, _) = refits
    task = DATA.tasks[1]
    x, y = task.x[PICKS], task.y[PICKS]
    with jax.enable_x64(True):

        def value(gp: GaussianProcess) -> Any:
            return task_nll(gp, jnp.asarray(x), jnp.asarray(y), jnp.ones(3, bool))[0] + SMALL.penalty(gp)

        start, unravel = ravel_pytree(policy.origin)
        found, _ = jax.jit(
            lambda start: minimise_lbfgs(lambda flat: value(unravel(flat)), start, SMALL.iterations)
        )(start)
        gp = unravel(found)
    before, after = (reference.nll(model, x, y) - log_prior(model) for model in (policy.origin, gp))
    assert after < before - 0.1
    mean, variance = reference.posterior(gp, x, y, task.x)
    deviation = np.sqrt(variance + reference.noise_variance(gp))
    np.testing.assert_allclose(scores.mean, mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(scores.deviation, deviation, rtol=0, atol=1e-6)
    np.testing.assert_allclose(scores.values, (mean - y.max() - 0.1) / deviation, rtol=0, atol=1e-5)


def test_the_size_of_the_buffer_changes_nothing(refits: Any) -> None:
    _, (small, large) = refits
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8), small, large)


@pytest.mark.slow
def test_refits_move_through_their_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Run(stbo_policy(seed), task, seed) for seed, task in enumerate(DATA.tasks[:2])]
    monkeypatch.setattr(refit_policy, "CAPACITIES", (2,))
    choices = simulate(runs, 4).choices
    assert (choices < [[5], [9]]).all()
    monkeypatch.setattr(refit_policy, "CAPACITIES", ())
    np.testing.assert_array_equal(simulate(runs, 4).choices, choices)


# STBOH

LOGARITHMS = {"signal_variance": (-1.0, 1.0), "lengthscales": (0.0, 1.0), "noise_variance": (-6.0, 3.0)}


def stboh_logarithms(gp: GaussianProcess) -> dict[str, Any]:
    return {
        "signal_variance": np.log(reference.softplus(gp.kernel.raw_signal_variance)),
        "lengthscales": np.log(reference.softplus(gp.kernel.raw_lengthscales)),
        "noise_variance": np.log(reference.softplus(gp.raw_noise_variance)),
    }


def test_stboh_starts_at_the_medians_of_its_priors_and_stays_between_their_percentiles() -> None:
    method = STBOH()
    (start,) = method.fit([Job(DATA, 0)])
    with jax.enable_x64(True):
        at_start = stboh_logarithms(method.model(start))
        far = [jax.tree.map(lambda leaf, to=to: jnp.full_like(leaf, to), start) for to in (-1e3, 1e3)]
        low, high = (stboh_logarithms(method.model(parameters)) for parameters in far)
    for name, (location, scale) in LOGARITHMS.items():
        np.testing.assert_allclose(at_start[name], location, atol=1e-9)
        np.testing.assert_allclose(low[name], norm(location, scale).ppf(0.01), rtol=1e-9)
        np.testing.assert_allclose(high[name], norm(location, scale).ppf(0.99), rtol=1e-9)
    assert at_start["lengthscales"].shape == (2,)  # one per input


def test_stbohs_penalty_is_the_negative_log_density_of_the_logarithms() -> None:
    method = STBOH()
    (start,) = method.fit([Job(DATA, 0)])
    with jax.enable_x64(True):
        moved = [jax.tree.map(lambda leaf, by=by: leaf + by, start) for by in (0.0, -0.7, 1.3)]
        found = np.array([float(method.penalty(parameters)) for parameters in moved])
        models = [stboh_logarithms(method.model(parameters)) for parameters in moved]
    expected = [
        -sum(norm(*LOGARITHMS[name]).logpdf(value).sum() for name, value in model.items()) for model in models
    ]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-12)


def test_stboh_chooses_by_ucb_of_a_gaussian_process_on_the_inputs() -> None:
    method = STBOH(iterations=8)
    task = DATA.tasks[1]
    with jax.enable_x64(True):
        (start,) = method.fit([Job(DATA, 0)])
        policy = method.policy(start, task)
        state = observed(policy, 4)
        scores, first = score(policy, state, 3), score(policy, state, 0)
    np.testing.assert_allclose(scores.values, scores.mean + 1.8 * scores.deviation, rtol=1e-12)
    # Before any observation all candidates are equal: the run's tie-breaking makes the first one random.
    assert len(set(first.values)) == 1
    firsts = simulate([Run(policy, task, seed) for seed in range(8)], 1).choices
    assert len(set(firsts[:, 0])) > 2


# Fine-tuning


def test_fine_tuning_starts_from_the_prior_and_sees_the_observations() -> None:
    task = DATA.tasks[1]
    with jax.enable_x64(True):
        gp = random_gp(2)
    fitted = prior_in_use(gp, 4)
    fixed, tuned = HNLL().policy(fitted, task), HNLL(refit_iterations=5).policy(fitted, task)
    assert isinstance(tuned, RefitPolicy)
    assert tuned.refit == FineTuning(5)
    with jax.enable_x64(True):
        x, mask = jnp.asarray(task.x), jnp.ones(9, bool)
        before = [score(policy, policy.start(x, mask, 4), 0) for policy in (fixed, tuned)]
        np.testing.assert_allclose(before[0].values, before[1].values, rtol=1e-12)
        after = score(tuned, observed(tuned, 4), 3)
    mean, _ = reference.posterior(gp, task.x[PICKS], task.y[PICKS], task.x)
    assert np.abs(after.mean - mean).max() > 1e-3  # the prior has moved
    residual = np.abs(after.mean[np.array(PICKS)] - task.y[PICKS])
    assert residual.max() < np.abs(mean[PICKS] - task.y[PICKS]).max()
