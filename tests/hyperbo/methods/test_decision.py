"""Acquisition functions as settings, the variance correction, methods that are configurations of others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import random_gp, tuning_data
from scipy.optimize import brentq
from scipy.stats import norm

from hyperbo.errors import InvalidInputError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.methods import ABLR, FSBO, HNLL, METHODS, MIMO, RFGP, STBO, STBOH, Decision, Method, Scores
from hyperbo.methods.pretrained import PretrainedMethod
from hyperbo.pretrain import Job, NLLTraining

MEAN = np.array([0.3, -1.0, 2.0, 0.5])
VARIANCE = np.array([1.0, 4.0, 0.25, 1e-3])
NOISE, BEST = 0.2, 1.1
MASK = np.array([True, True, True, False])


def scores(decision: Decision, step: int = 2, training_tasks: int = 8) -> Scores:
    with jax.enable_x64(True):
        found = decision.scores(
            *map(jnp.asarray, (MEAN, VARIANCE, NOISE, BEST, MASK, training_tasks, step)), jax.random.key(3)
        )
        return jax.tree.map(np.asarray, found)


def test_each_acquisition_function_is_its_formula() -> None:
    deviation = np.sqrt(VARIANCE + NOISE)
    z = (MEAN - BEST) / deviation
    expected = {
        "probability_of_improvement": (MEAN - BEST - 0.1) / deviation,
        "expected_improvement": np.log(deviation * (norm.pdf(z) + z * norm.cdf(z))),
        "upper_confidence_bound": MEAN + 3.0 * deviation,
    }
    for name, values in expected.items():
        found = scores(Decision(name))
        np.testing.assert_allclose(found.values, values, rtol=1e-9)
        np.testing.assert_array_equal(found.mean, MEAN)
        np.testing.assert_allclose(found.deviation, deviation, rtol=1e-12)

    def below_median(value: float) -> float:
        logarithms = norm.logcdf((value - MEAN) / np.sqrt(VARIANCE))
        return logarithms[MASK].sum() - np.log(0.5)  # padding has no say in the maximum

    maximum = brentq(below_median, -10.0, 20.0, xtol=1e-13)
    found = scores(Decision("max_value_probability_of_improvement"))
    np.testing.assert_allclose(found.values, (MEAN - maximum) / deviation, rtol=1e-9)
    drawn = scores(Decision("random")).values
    assert len(set(drawn)) == 4
    assert ((drawn >= 0) & (drawn < 1)).all()


@pytest.mark.parametrize(("step", "factor"), [(0, 8 / 7), (2, 8 / 5), (6, 8.0), (7, 8.0), (50, 8.0)])
def test_corrected_variance_is_that_of_theorem_posterior_bound(step: int, factor: float) -> None:
    # Theorem posterior_bound: N / (N - t) in iteration t = step + 1; at most N, where it says nothing.
    found = scores(Decision("upper_confidence_bound", 1.0, correct_variance=True), step)
    np.testing.assert_allclose(found.deviation, np.sqrt(factor * (VARIANCE + NOISE)), rtol=1e-12)
    np.testing.assert_allclose(found.values, MEAN + found.deviation, rtol=1e-12)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="unknown acquisition function 'thompson'; use probability"):
        Decision("thompson")
    with pytest.raises(InvalidInputError, match=r"coefficient = -1\.0"):
        Decision(coefficient=-1.0)


@pytest.mark.parametrize("settings", [STBO, STBOH, MIMO, RFGP])
def test_the_correction_is_refused_where_there_is_no_prior_from_tasks(settings: type) -> None:
    with pytest.raises(InvalidInputError, match=f"{settings.__name__}: decision.correct_variance"):
        settings(decision=Decision(correct_variance=True))


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


def test_every_registered_method_has_the_papers_settings_without_arguments_and_keeps_the_protocol() -> None:
    for settings in METHODS.values():
        assert isinstance(settings(), Method)
    assert (FSBO().architecture.mean, FSBO().architecture.kernel) == ("zero", "matern52")
    assert (ABLR().architecture.mean, ABLR().architecture.kernel) == ("zero", "linear")
    for settings in (HNLL, FSBO, ABLR):
        method = settings()
        assert isinstance(method, PretrainedMethod)
        assert method.training == NLLTraining(50_000, 50, 1e-3)
        assert method.architecture.hidden == (32, 32)


def test_fit_gives_the_prior_and_the_number_of_its_training_tasks() -> None:
    data = tuning_data((5, 9, 7), seed=3)
    method = FSBO(training=NLLTraining(steps=4, steps_per_call=4, points_per_task=5))
    (fitted,) = method.fit([Job(data, 1)])
    assert int(fitted.training_tasks) == 3
    (pretrained,) = method.pretrain([Job(data, 1)])
    jax.tree.map(np.testing.assert_array_equal, fitted.gp, pretrained.gp)
    assert not jax.tree.leaves(fitted.gp.mean)  # a zero mean has no parameters
