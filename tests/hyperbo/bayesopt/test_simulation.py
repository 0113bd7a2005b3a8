from __future__ import annotations

from dataclasses import replace

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from gp_cases import random_gp, tuning_data
from scipy.stats import chisquare

from hyperbo.bayesopt import offline as simulate_module
from hyperbo.bayesopt.offline import Run, Simulation, run_records, simulate
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods import GPPolicy, Rand, Scores, prior_in_use
from hyperbo.methods.rand import RandPolicy

DATA = tuning_data((5, 9, 7), seed=3)
ITERATIONS = 6


def policy(seed: int) -> GPPolicy:
    with jax.enable_x64(True):
        return GPPolicy(prior_in_use(jax.tree.map(np.asarray, random_gp(seed)), training_tasks=4))


def gp_runs() -> list[Run]:
    return [Run(policy(seed), task, seed) for seed in (0, 1) for task in DATA.tasks] + [
        Run(policy(5), DATA.tasks[0], 5)
    ]


def by_hand(
    gp: GaussianProcess, task: Task, iterations: int, initial: tuple[int, ...] = (), repeats: bool = True
) -> tuple[list[int], list[float], list[float]]:
    """Bayesian optimization with dense posteriors, one observation after another."""
    chosen = list(initial)
    means, deviations = [], []
    for _ in range(iterations):
        mean, variance = reference.posterior(gp, task.x[chosen], task.y[chosen], task.x)
        target = task.y[chosen].max() + 0.1 if chosen else 0.0
        deviation = np.sqrt(variance + reference.noise_variance(gp))
        scores = (mean - target) / deviation
        if not repeats:
            scores[chosen] = -np.inf
        chosen.append(int(np.argmax(scores)))
        means.append(mean[chosen[-1]])
        deviations.append(deviation[chosen[-1]])
    return chosen[len(initial) :], means, deviations


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(gp_runs(), ITERATIONS, repeats=True)


def test_choices_and_predictions_are_those_of_a_plain_loop(simulation: Simulation) -> None:
    expected = [by_hand(run.policy.fitted.gp, run.task, ITERATIONS) for run in gp_runs()]
    choices, means, deviations = map(np.array, zip(*expected, strict=True))
    np.testing.assert_array_equal(simulation.choices, choices)
    np.testing.assert_allclose(simulation.mean, means, rtol=0, atol=1e-9)
    np.testing.assert_allclose(simulation.deviation, deviations, rtol=0, atol=1e-9)
    assert any(len(set(row)) < ITERATIONS for row in choices)  # candidates are observed again
    assert any(len(set(row)) > 2 for row in choices)


def test_runs_start_from_given_trials_and_repeat_none_unless_they_may() -> None:
    initial = ((0, 3), (8, 1), (2, 6))
    runs = [
        Run(policy(seed), task, seed, rows)
        for seed, task, rows in zip(range(3), DATA.tasks, initial, strict=True)
    ]
    found = simulate(runs, 3)
    expected = [by_hand(run.policy.fitted.gp, run.task, 3, run.initial, repeats=False)[0] for run in runs]
    np.testing.assert_array_equal(found.choices, expected)
    assert all(len({*row, *rows}) == 5 for row, rows in zip(expected, initial, strict=True))
    # With repeats allowed the same runs observe something twice: the flag is what forbids it.
    again = simulate(runs, 3, repeats=True).choices
    assert any(len({*row, *rows}) < 5 for row, rows in zip(again.tolist(), initial, strict=True))


def test_a_run_that_has_observed_every_trial_goes_on_with_repeats() -> None:
    runs = [Run(policy(seed), DATA.tasks[0], seed, (1, 3)) for seed in (0, 1)]
    found = simulate(runs, 6)
    for row in found.require_usable().choices:
        assert sorted(row[:3]) == [0, 2, 4]
        assert set(row[3:]) <= set(range(5))  # no padding, and no failure
    longer = [Run(policy(0), task, 0, (1, 3)) for task in DATA.tasks]
    np.testing.assert_array_equal(simulate(longer, 6).choices[0], found.choices[0])


def test_the_number_of_runs_per_call_changes_nothing(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate_module, "CPU_RUNS_PER_DEVICE", 3)  # the last call is padded
    calls: list[tuple[int, int]] = []
    again = simulate(gp_runs(), ITERATIONS, repeats=True, progress=lambda *call: calls.append(call))
    np.testing.assert_array_equal(again.choices, simulation.choices)
    np.testing.assert_array_equal(again.mean, simulation.mean)
    per_call = 3 * jax.device_count()
    assert calls == [*((begin, 7) for begin in range(0, 7, per_call)), (7, 7)]


def test_records_name_what_was_observed(simulation: Simulation) -> None:
    runs = gp_runs()
    records = run_records("H-NLL", runs, simulation)
    assert len(records) == len(runs) * ITERATIONS
    row = records.iloc[2 * ITERATIONS + 3]  # the fourth iteration of the third run
    task, candidate = runs[2].task, simulation.choices[2, 3]
    assert row["method"] == "H-NLL"
    assert (row["task"], row["task_dataset"], row["seed"], row["iteration"]) == ("t2", "d2", 0, 4)
    assert row["trial_id"] == f"t2/{candidate}"
    assert (row["y"], row["objective"]) == (task.y[candidate], task.objective[candidate])
    assert (row["mean"], row["deviation"]) == (simulation.mean[2, 3], simulation.deviation[2, 3])
    assert (row["y_max"], row["y_min"]) == (task.y.max(), task.y.min())
    given = ["y_initial", "objective_initial"]
    assert pd.notna(records.drop(columns=given)).all(axis=None)
    assert records[given].isna().all(axis=None)
    begun = run_records("H-NLL", [replace(run, initial=(1, 3)) for run in runs], simulation)
    best = 1 + 2 * int(task.y[3] > task.y[1])
    assert begun[given].iloc[2 * ITERATIONS].tolist() == [task.y[best], task.objective[best]]


def test_a_run_with_a_score_that_is_no_number_fails_alone(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), policy(0).fitted.gp)
    runs = gp_runs()
    runs[2] = Run(replace(policy(0), fitted=prior_in_use(broken, 4)), DATA.tasks[2], 8)
    monkeypatch.setattr(simulate_module, "CPU_RUNS_PER_DEVICE", 3)  # as above: nothing is compiled anew
    found = simulate(runs, ITERATIONS, repeats=True)
    reason = "GPPolicy scored a candidate NaN on task 't2' with seed 8, in iteration 1"
    assert found.failures == (None, None, reason, None, None, None, None)
    others = [0, 1, 3, 4, 5, 6]
    usable = found.rows(others).require_usable()
    np.testing.assert_array_equal(usable.choices, simulation.choices[others])
    np.testing.assert_array_equal(usable.mean, simulation.mean[others])
    with pytest.raises(NumericalError, match=reason):
        found.require_usable()
    with pytest.raises(NumericalError, match=reason):
        run_records("H-NLL", runs, found)


def rand(task: Task, seed: int) -> Run:
    method = Rand()
    return Run(method.policy(None, task), task, seed)


@pytest.mark.parametrize(
    ("runs", "iterations", "message"),
    [
        ([], 3, "no run to simulate"),
        ([rand(DATA.tasks[0], 0)], 0, "iterations = 0 is not positive"),
        ([rand(DATA.tasks[0], 0), Run(policy(0), DATA.tasks[0], 0)], 3, "differ in structure"),
        ([rand(DATA.tasks[0], 0), replace(rand(DATA.tasks[0], 0), initial=(1,))], 3, "initial rows"),
    ],
    ids=["none", "iterations", "structures", "initial"],
)
def test_what_cannot_be_run_is_refused(runs: list[Run], iterations: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        simulate(runs, iterations)


def test_initial_rows_must_be_rows_of_the_task() -> None:
    with pytest.raises(InvalidInputError, match=r"task 't0': initial rows \[5, -1\] of a task of 5 trials"):
        replace(rand(DATA.tasks[0], 0), initial=(4, 5, -1))


@pytree
class AllEqual(RandPolicy):
    """Finds every candidate as good as any other."""

    def score(self, state, step, key):
        return state, Scores.without_prediction(jnp.zeros(state.shape[0], state.dtype))


def test_equal_scores_are_broken_at_random_among_true_candidates() -> None:
    runs = [Run(AllEqual(), task, seed) for seed in range(300) for task in DATA.tasks[:2]]
    choices = simulate(runs, 2, repeats=True)
    for number, size in enumerate((5, 9)):
        of_task = choices.choices[number::2]
        assert of_task.max() < size
        assert chisquare(np.bincount(of_task.ravel(), minlength=size)).pvalue > 1e-3
    assert np.isnan(choices.mean).all()
    assert np.isnan(choices.deviation).all()


def test_rand_is_uniform_over_the_true_candidates() -> None:
    runs = [rand(task, seed) for seed in range(400) for task in DATA.tasks[:2]]
    choices = simulate(runs, 4, repeats=True).choices
    for number, size in enumerate((5, 9)):
        of_task = choices[number::2]
        assert of_task.max() < size
        assert chisquare(np.bincount(of_task.ravel(), minlength=size)).pvalue > 1e-3
        pairs = of_task[:, 0] * size + of_task[:, 1]  # successive choices are independent: repeats happen
        assert chisquare(np.bincount(pairs, minlength=size * size)).pvalue > 1e-3
    np.testing.assert_array_equal(simulate(runs[:2], 4, repeats=True).choices, choices[:2])
    once = simulate(runs, 4).choices
    assert all(len(set(row)) == 4 for row in once)
    for number, size in enumerate((5, 9)):
        for iteration in (0, 3):  # each is uniform also where none is observed twice
            of_task = once[number::2, iteration]
            assert chisquare(np.bincount(of_task, minlength=size)).pvalue > 1e-3


def test_rand_does_not_depend_on_the_padding() -> None:
    alone = simulate([rand(DATA.tasks[0], 4)], 4).choices
    with_longer = [rand(task, 4) for task in DATA.tasks]
    np.testing.assert_array_equal(simulate(with_longer, 4).choices[:1], alone)
