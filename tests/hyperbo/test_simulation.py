from __future__ import annotations

from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from gp_cases import random_gp, tuning_data
from scipy.stats import chisquare, lognorm, norm

import hyperbo.methods.stbo as stbo_module
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.methods import STBO, GPPolicy, Rand
from hyperbo.methods.stbo import STBOState, penalty
from hyperbo.simulate import Run, run_records, simulate
from hyperbo.tuning_data import Task

DATA = tuning_data((5, 9, 7), seed=3)
ITERATIONS = 6


def policy(seed: int) -> GPPolicy:
    with jax.enable_x64(True):
        return GPPolicy(jax.tree.map(np.asarray, random_gp(seed)))


def gp_runs() -> list[Run]:
    return [Run(policy(seed), task, seed) for seed in (0, 1) for task in DATA.tasks] + [
        Run(policy(5), DATA.tasks[0], 5)
    ]


def choices_by_hand(gp: GaussianProcess, task: Task, iterations: int) -> list[int]:
    """Bayesian optimization with dense posteriors, one observation after another."""
    chosen: list[int] = []
    for _ in range(iterations):
        mean, variance = reference.posterior(gp, task.x[chosen], task.y[chosen], task.x)
        target = task.y[chosen].max() + 0.1 if chosen else 0.0
        scores = (mean - target) / np.sqrt(variance + reference.noise_variance(gp))
        chosen.append(int(np.argmax(scores)))
    return chosen


@pytest.fixture(scope="module")
def choices() -> np.ndarray:
    return simulate(gp_runs(), ITERATIONS, iterations_per_call=3)


def test_choices_are_those_of_a_plain_loop(choices: np.ndarray) -> None:
    expected = [choices_by_hand(run.policy.gp, run.task, ITERATIONS) for run in gp_runs()]
    np.testing.assert_array_equal(choices, expected)
    assert any(len(set(row)) < ITERATIONS for row in expected)  # candidates are observed again
    assert any(len(set(row)) > 2 for row in expected)


def test_the_number_of_iterations_per_call_changes_nothing(choices: np.ndarray) -> None:
    calls: list[tuple[int, int]] = []
    again = simulate(
        gp_runs(), ITERATIONS, iterations_per_call=ITERATIONS, progress=lambda *call: calls.append(call)
    )
    np.testing.assert_array_equal(again, choices)
    assert calls == [(0, ITERATIONS), (ITERATIONS, ITERATIONS)]


def test_records_name_what_was_observed(choices: np.ndarray) -> None:
    runs = gp_runs()
    records = run_records("H-NLL", runs, choices)
    assert len(records) == len(runs) * ITERATIONS
    row = records.iloc[2 * ITERATIONS + 3]  # the fourth iteration of the third run
    task, candidate = runs[2].task, choices[2, 3]
    assert row["method"] == "H-NLL"
    assert (row["task"], row["task_dataset"], row["seed"], row["iteration"]) == ("t2", "d2", 0, 4)
    assert row["trial_id"] == f"t2/{candidate}"
    assert (row["y"], row["objective"]) == (task.y[candidate], task.objective[candidate])
    assert row["y_max"] == task.y.max()
    assert pd.notna(records).all(axis=None)


@pytest.mark.parametrize(("iterations", "per_call"), [(5, 2), (0, 1)])
def test_iterations_that_do_not_divide(iterations: int, per_call: int) -> None:
    with pytest.raises(InvalidInputError, match="no positive multiple"):
        simulate(gp_runs(), iterations, iterations_per_call=per_call)


def test_a_score_that_is_no_number_is_an_error_that_names_the_run() -> None:
    broken = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), policy(0))
    runs = [Run(policy(0), DATA.tasks[0], 0), Run(broken, DATA.tasks[2], 8)]
    with pytest.raises(NumericalError, match="GPPolicy scored a candidate NaN on task 't2' with seed 8"):
        simulate(runs, 2, iterations_per_call=2)


# Rand


def test_rand_is_uniform_over_the_true_candidates_and_repeats_by_seed() -> None:
    runs = [Run(Rand().policy(2, seed), task, seed) for seed in range(400) for task in DATA.tasks[:2]]
    choices = simulate(runs, 4, iterations_per_call=2)
    for number, size in enumerate((5, 9)):
        of_task = choices[number::2]
        assert of_task.max() < size
        assert chisquare(np.bincount(of_task.ravel(), minlength=size)).pvalue > 1e-3
        pairs = of_task[:, 0] * size + of_task[:, 1]  # successive choices are independent: repeats happen
        assert chisquare(np.bincount(pairs, minlength=size * size)).pvalue > 1e-3
    np.testing.assert_array_equal(simulate(runs[:2], 4, iterations_per_call=2), choices[:2])


def test_rand_does_not_depend_on_the_padding() -> None:
    alone = simulate([Run(Rand().policy(2, 0), DATA.tasks[0], 4)], 4, iterations_per_call=4)
    with_longer = [Run(Rand().policy(2, 0), task, 4) for task in DATA.tasks]
    np.testing.assert_array_equal(simulate(with_longer, 4, iterations_per_call=4)[:1], alone)


# STBO

SMALL = STBO(Architecture((2,)), iterations=8)


def log_prior(gp: GaussianProcess) -> float:
    positive = np.append(gp.kernel.raw_lengthscales, gp.kernel.raw_signal_variance)
    return float(
        lognorm(s=0.1).logpdf(reference.softplus(positive)).sum()
        + norm(0.0, 0.1).logpdf(reference.noise_variance(gp))
    )


def test_penalty_is_the_negative_log_prior_up_to_a_constant() -> None:
    with jax.enable_x64(True):
        models = [random_gp(seed, raw_noise_variance=raw) for seed, raw in enumerate((-3.0, -1.0, 2.0))]
        found = np.array([float(penalty(model, SMALL)) for model in models])
    sums = found + [log_prior(model) for model in models]
    np.testing.assert_allclose(sums, sums[0], rtol=1e-10)


@pytest.fixture(scope="module")
def refits() -> Any:
    """STBO as drawn, its state after three observations, its refit in buffers of 4 and of 8 rows."""
    task, picks = DATA.tasks[1], [0, 4, 6]
    with jax.enable_x64(True):
        stbo = SMALL.policy(2, seed=1)
        state = stbo.start(jnp.asarray(task.x), 8)
        for step, pick in enumerate(picks):
            state = stbo.observe(state, jnp.asarray(step), jnp.asarray(pick), jnp.asarray(task.y[pick]))
        results = [jax.jit(stbo.fit_to(size))(stbo.gp, state, jnp.asarray(3)) for size in (4, 8)]
    return stbo.gp, state, results


def test_refit_lowers_the_negative_log_posterior(refits: tuple[GaussianProcess, STBOState, Any]) -> None:
    drawn, state, ((gp, mean, variance), _) = refits
    x, y = np.asarray(state.x)[:3], np.asarray(state.y)[:3]
    np.testing.assert_array_equal(x, DATA.tasks[1].x[[0, 4, 6]])
    before, after = (reference.nll(model, x, y) - log_prior(model) for model in (drawn, gp))
    assert after < before - 0.1
    # The scores that follow are those of the refitted model.
    expected_mean, expected_variance = reference.posterior(gp, x, y, np.asarray(state.candidates))
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, rtol=0, atol=1e-9)


def test_the_size_of_the_buffer_changes_nothing(refits: tuple[GaussianProcess, STBOState, Any]) -> None:
    _, _, (small, large) = refits
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8), small, large)


def test_stbo_moves_through_its_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Run(SMALL.policy(2, seed), task, seed) for seed, task in enumerate(DATA.tasks[:2])]
    monkeypatch.setattr(stbo_module, "CAPACITIES", (2,))
    choices = simulate(runs, 4, iterations_per_call=4)
    assert (choices < [[5], [9]]).all()
    monkeypatch.setattr(stbo_module, "CAPACITIES", ())
    np.testing.assert_array_equal(simulate(runs, 4, iterations_per_call=4), choices)
