"""TPE on recorded trials: what it may choose, what it is told, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import make_task
from optuna.samplers import TPESampler
from tuning_priors import UNIT

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Condition, Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import output_warping
from hyperbo.tuning.optuna.recorded import sampler_rows

RANDOM = np.random.default_rng(1)
X = RANDOM.uniform(size=(150, 2))
LOSS = ((X - 0.7) ** 2).sum(axis=1)
TASK = replace(make_task("one", "one", X, -LOSS), objective=LOSS)
DOWN, UP = output_warping("negative"), output_warping("identity")


def tpe_rows(space, task, warping, trials, seed):
    return sampler_rows(space, task, warping, trials, TPESampler(seed=seed))


def test_no_trial_is_tried_twice_and_a_short_task_ends():
    few = replace(TASK, x=X[:12], y=TASK.y[:12], objective=LOSS[:12], trial_ids=TASK.trial_ids[:12])
    rows = tpe_rows(UNIT, few, DOWN, 20, seed=0)
    assert sorted(rows.tolist()) == list(range(12))


def test_it_learns_in_the_direction_of_the_objective():
    after_start = [tpe_rows(UNIT, TASK, DOWN, 40, seed)[10:] for seed in range(3)]
    assert np.mean([LOSS[rows].mean() for rows in after_start]) < 0.6 * LOSS.mean()
    mirrored = replace(TASK, objective=-LOSS)
    np.testing.assert_array_equal(tpe_rows(UNIT, mirrored, UP, 15, 0), tpe_rows(UNIT, TASK, DOWN, 15, 0))


@pytest.mark.parametrize(("warping", "sign"), [(DOWN, 1.0), (UP, -1.0)])
def test_an_infeasible_trial_is_told_with_the_worst_objective(warping, sign):
    failed = sign * LOSS > np.quantile(sign * LOSS, 0.4)
    objective = sign * LOSS
    worst = (max if sign > 0 else min)(objective[~failed])
    missing = replace(TASK, objective=np.where(failed, np.nan, objective))
    told = replace(TASK, objective=np.where(failed, worst, objective))
    np.testing.assert_array_equal(
        tpe_rows(UNIT, missing, warping, 25, 0), tpe_rows(UNIT, told, warping, 25, 0)
    )


def test_a_space_of_levels_integers_and_conditions_is_searched():
    space = SearchSpace(
        (
            Choice("optimizer", ("sgd", "adam", "rmsprop", "adagrad")),
            Parameter("momentum", 0.0, 0.99, "log1m", condition=Condition("optimizer", ("sgd",))),
            Parameter("depth", 1, 8, integer=True),
            Choice("batch_norm", (False, True)),
            Choice("device", ("cpu",)),
        )
    )
    x = np.unique(space.to_unit(space.from_unit(RANDOM.uniform(size=(400, space.dimension)))), axis=0)
    values = space.values(space.from_unit(x))
    loss = np.array([(each["optimizer"] != "adam") + 0.1 * abs(each["depth"] - 4) for each in values])
    task = replace(make_task("one", "one", x, -loss), objective=loss)
    rows = np.stack([tpe_rows(space, task, DOWN, 30, seed) for seed in range(3)])
    assert all(len(set(of_run)) == 30 for of_run in rows.tolist())
    assert loss[rows[:, 15:]].mean() < 0.8 * loss.mean()


def test_a_momentum_is_searched_by_its_coordinate():
    """Else nine of ten values that it draws would be below 0.9."""
    space = SearchSpace((Parameter("momentum", 0.0, 0.9999, "log1m"), Parameter("rate", 0.0, 1.0)))
    x = RANDOM.uniform(size=(100, 2))
    task = replace(make_task("one", "one", x, x[:, 0]), objective=x[:, 0])
    # The first ten are random: spread over the coordinate, not crowded at its lower end.
    first = np.concatenate([x[tpe_rows(space, task, UP, 10, seed), 0] for seed in range(5)])
    assert abs(first.mean() - 0.5) < 0.15
