"""Acquisition functions as settings, the variance correction, methods that are configurations of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matched_block, random_gp, tuning_data, with_blocks

from hyperbo.acquisition import acquisition_values
from hyperbo.data.tuning_data import Task
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.methods import (
    ABLR,
    FSBO,
    HEKL,
    HNLL,
    METHODS,
    AcquisitionDecision,
    HSum,
    Method,
    Scores,
)
from hyperbo.methods.decision import THRESHOLD_UNITS
from hyperbo.methods.pretrained import PretrainedMethod
from hyperbo.pretrain import Job, NLLTraining, SumTraining

MEAN = np.array([0.3, -1.0, 2.0, 0.5])
VARIANCE = np.array([1.0, 4.0, 0.25, 1e-3])
NOISE, BEST = 0.2, 1.1
MASK = np.array([True, True, True, False])


def scores(
    decision: AcquisitionDecision, step: int = 2, training_tasks: int = 8, best: float = BEST, **known: float
) -> Scores:
    with jax.enable_x64(True):
        found = decision.scores(
            *map(jnp.asarray, (MEAN, VARIANCE, NOISE, best, MASK, training_tasks, step)),
            jax.random.key(3),
            **known,
        )
        return jax.tree.map(np.asarray, found)


def test_scores_are_the_acquisition_values_with_the_prediction_of_an_observation() -> None:
    found = scores(AcquisitionDecision())
    np.testing.assert_allclose(found.values, (MEAN - BEST - 0.1) / np.sqrt(VARIANCE + NOISE), rtol=1e-9)
    np.testing.assert_array_equal(found.mean, MEAN)
    np.testing.assert_allclose(found.deviation, np.sqrt(VARIANCE + NOISE), rtol=1e-12)


def test_the_threshold_of_pi_is_a_multiple_of_the_spread_unless_it_is_absolute() -> None:
    deviation = np.sqrt(VARIANCE + NOISE)
    for settings, known, threshold in (
        ({}, {"spread": 0.4}, 0.04),
        ({}, {}, 0.1),  # no training task: a spread of 1
        ({"threshold": 0.5}, {"spread": 0.4}, 0.2),
        ({"threshold_unit": "absolute"}, {"spread": 0.4}, 0.1),
        ({"threshold": 0.0}, {"spread": 0.4}, 0.0),
    ):
        decision = AcquisitionDecision(**settings)
        np.testing.assert_allclose(
            scores(decision, **known).values, (MEAN - BEST - threshold) / deviation, rtol=1e-9
        )
        # Before any observation the value to exceed is 0, whatever the threshold.
        np.testing.assert_allclose(
            scores(decision, best=-np.inf, **known).values, MEAN / deviation, rtol=1e-9
        )


@pytest.mark.slow
def test_the_spread_of_training_data_reaches_every_policy_that_learns_from_them() -> None:
    data = tuning_data((5, 9, 7), seed=3)
    data = replace(data, tasks=tuple(replace(task, y=10.0 * task.y) for task in data.tasks))
    spread = np.median([np.sqrt(np.mean((task.y - task.y.mean()) ** 2)) for task in data.tasks])
    assert data.spread == pytest.approx(spread, rel=1e-12)
    flat = replace(data, tasks=tuple(replace(task, y=0.0 * task.y) for task in data.tasks))
    assert flat.spread == 1.0
    task, training = data.tasks[0], NLLTraining(steps=2, steps_per_call=2, points_per_task=5)
    (fitted,) = (method := HNLL(training=training)).fit([Job(data, 1)])
    kept = method.in_use(fitted.gp, data)  # as for a prior that is read from a file
    for known, settings in ((fitted, method), (kept, method), (kept, replace(method, refit_iterations=2))):
        policy = settings.policy(known, task)
        found, absolute = (
            first_scores_after_an_observation(
                replace(policy, decision=AcquisitionDecision(threshold_unit=unit)), task
            )
            for unit in THRESHOLD_UNITS
        )
        moved = (absolute.values - found.values) * found.deviation
        np.testing.assert_allclose(moved, 0.1 * spread - 0.1, rtol=1e-6)


def first_scores_after_an_observation(policy: Any, task: Task) -> Scores:
    with jax.enable_x64(True):
        policy = jax.tree.map(jnp.asarray, policy)
        state = policy.start(jnp.asarray(task.x), jnp.ones(len(task.y), bool), 1)
        state = policy.observe(state, jnp.asarray(0), jnp.asarray(2), jnp.asarray(task.y[2]))
        return policy.score(state, jnp.asarray(1), jax.random.key(0))[1]


def test_padding_has_no_say_in_the_estimated_maximum() -> None:
    name = "max_value_probability_of_improvement"
    inside = acquisition_values(name, MEAN[MASK], VARIANCE[MASK], noise_variance=NOISE, best=BEST)
    np.testing.assert_allclose(scores(AcquisitionDecision(name)).values[MASK], inside, rtol=1e-9)


def test_random_scores_are_draws_from_the_unit_interval() -> None:
    drawn = scores(AcquisitionDecision("random")).values
    assert len(set(drawn)) == 4
    assert ((drawn >= 0) & (drawn < 1)).all()


@pytest.mark.parametrize(("step", "factor"), [(0, 8 / 7), (2, 8 / 5), (6, 8.0), (7, 8.0), (50, 8.0)])
def test_corrected_variance_is_that_of_theorem_posterior_bound(step: int, factor: float) -> None:
    # Theorem posterior_bound: N / (N - t) in iteration t = step + 1; at most N, where it says nothing.
    found = scores(AcquisitionDecision("upper_confidence_bound", 1.0, correct_variance=True), step)
    np.testing.assert_allclose(found.deviation, np.sqrt(factor * (VARIANCE + NOISE)), rtol=1e-12)
    np.testing.assert_allclose(found.values, MEAN + found.deviation, rtol=1e-12)


def test_the_posterior_over_candidates_is_that_of_dense_algebra() -> None:
    import gp_cases as reference

    data = tuning_data((9,), seed=1)
    task = data.tasks[0]
    with jax.enable_x64(True):
        gp = random_gp(4)
        posterior = CandidatePosterior.of(gp, jnp.asarray(task.x), 5)
        picks = [3, 0, 3, 8]  # one of them twice
        for step, pick in enumerate(picks):
            posterior = posterior.observe(jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
    mean, variance = reference.posterior(gp, task.x[picks], task.y[picks], task.x)
    np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(posterior.variance, variance, rtol=0, atol=1e-10)


def test_every_registered_method_has_settings_without_arguments_and_keeps_the_protocol() -> None:
    for settings in METHODS.values():
        assert isinstance(settings(), Method)
    assert (FSBO().architecture.mean, FSBO().architecture.kernel) == ("zero", "matern52")
    assert (ABLR().architecture.mean, ABLR().architecture.kernel) == ("zero", "linear")
    for settings in (HNLL, FSBO, ABLR):
        method = settings()
        assert isinstance(method, PretrainedMethod)
        assert method.training == NLLTraining()
        assert method.architecture.hidden == (32, 32)


def test_fit_gives_the_prior_and_the_number_of_its_training_tasks() -> None:
    data = tuning_data((5, 9, 7), seed=3)
    method = FSBO(training=NLLTraining(steps=4, steps_per_call=4, points_per_task=5))
    (fitted,) = method.fit([Job(data, 1)])
    assert int(fitted.training_tasks) == 3
    (pretrained,) = method.pretrain([Job(data, 1)])
    jax.tree.map(np.testing.assert_array_equal, fitted.gp, pretrained.gp)
    assert not jax.tree.leaves(fitted.gp.mean)  # a zero mean has no parameters


def test_the_correction_of_h_ekl_counts_the_tasks_of_matched_blocks() -> None:
    blocks = (matched_block(("t0", "t1"), 4, seed=1), matched_block(("t1", "t2"), 3, seed=2))
    data = with_blocks(tuning_data((5, 9, 7, 6)), *blocks)
    assert HNLL().tasks_learned_from(data) == 4
    assert HEKL().tasks_learned_from(data) == 3
    assert HSum().tasks_learned_from(data) == 4
    assert HSum(training=SumTraining(nll=0.0)).tasks_learned_from(data) == 3
