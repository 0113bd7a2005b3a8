from __future__ import annotations

from dataclasses import replace
from functools import partial

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, tuning_data

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.pretrain import Job, NLLTraining, pretrain_nll
from hyperbo.pretrain.nll import TasksOfModel, exponentiated_gradient, nll_steps, start_training
from hyperbo.pretrain.task_table import tasks_of_jobs

ARCHITECTURE = Architecture((3,), noise_variance=0.05)
DATA = tuning_data((3, 9, 6))
WEIGHTS = (0.2, 3.0, 0.8)
# Adam barely moves: every step sees the model as drawn.
STILL = NLLTraining(steps=3, points_per_task=20, learning_rate=1e-13, steps_per_call=1)


def initial(seed: int) -> GaussianProcess:
    with jax.enable_x64(True):
        weight_key, _ = jax.random.split(jax.random.key(seed))
        return initialise(weight_key, SPACE.dimension, ARCHITECTURE)


def task_nlls(seed: int) -> np.ndarray:
    return np.array([reference.nll(initial(seed), task.x, task.y) for task in DATA.tasks])


def test_task_weights_weigh_the_tasks_and_uniform_ones_change_nothing() -> None:
    jobs = [Job(DATA, 4), Job(DATA, 4, (2.0, 2.0, 2.0)), Job(DATA, 4, WEIGHTS)]
    plain, uniform, weighted = pretrain_nll(jobs, ARCHITECTURE, STILL)
    np.testing.assert_array_equal(plain.losses, uniform.losses)
    jax.tree.map(np.testing.assert_array_equal, plain.gp, uniform.gp)
    expected = 3.0 * np.dot(WEIGHTS, task_nlls(4)) / sum(WEIGHTS)
    np.testing.assert_allclose(weighted.losses, expected, rtol=1e-8)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0, 1.0), (0.0, 0.0, 0.0), (1.0, float("nan"), 1.0)])
def test_task_weights_that_make_no_sense(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"task.weights"):
        Job(DATA, 0, weights)


def test_group_dro_moves_the_weights_by_the_exponentiated_gradient() -> None:
    step = 0.03
    jobs = [Job(DATA, 1), Job(DATA, 1, WEIGHTS), Job(DATA.hold_out("d1"), 1)]  # the last is padded
    models = pretrain_nll(jobs, ARCHITECTURE, replace(STILL, group_dro_step=step))
    nlls = task_nlls(1)
    for model, start, kept in zip(
        models, [(1, 1, 1), WEIGHTS, (1, 1)], [[0, 1, 2], [0, 1, 2], [0, 2]], strict=True
    ):
        weights = np.array(start) / np.sum(start)
        for loss in model.losses:
            assert loss == pytest.approx(len(kept) * weights @ nlls[kept], rel=1e-7)
            weights = weights * np.exp(step * nlls[kept])
            weights = weights / weights.sum()
        # The worst task has gained.
        assert (np.diff(model.losses) > 0.0).all()


@pytest.mark.usefixtures("x64")
def test_a_task_drawn_twice_moves_twice_and_one_without_weight_stays_there() -> None:
    weights, losses = np.array([0.5, 0.3, 0.2, 0.0]), np.array([2.0, -1.0, 3.0, 700.0])
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights))
    found = exponentiated_gradient(log_weights, jnp.array([2, 0, 2, 3]), jnp.asarray(losses), 0.1)
    expected = weights * np.exp(0.1 * np.array([-1.0, 0.0, 2.0 + 3.0, 700.0]))
    np.testing.assert_allclose(np.exp(found), expected / expected.sum(), rtol=1e-12)
    assert np.isneginf(found[3])


def test_group_dro_lowers_the_worst_task() -> None:
    training = NLLTraining(steps=300, points_per_task=9, learning_rate=1e-2, steps_per_call=300)
    jobs = [Job(DATA, 0)]

    def worst(group_dro_step: float | None) -> float:
        (model,) = pretrain_nll(jobs, ARCHITECTURE, replace(training, group_dro_step=group_dro_step))
        return max(reference.nll(model.gp, task.x, task.y) for task in DATA.tasks)

    assert worst(0.01) < worst(None)


@pytest.mark.slow
def test_tasks_drawn_estimate_the_loss_of_all_without_bias_and_alone_as_in_a_batch() -> None:
    training = NLLTraining(
        steps=4000,
        points_per_task=20,
        learning_rate=1e-13,
        steps_per_call=40,
        tasks_per_step=2,
        patience=None,
    )
    jobs = [Job(DATA, 2, WEIGHTS), Job(DATA.hold_out("d1"), 3)]
    models = pretrain_nll(jobs, ARCHITECTURE, training)
    for model, weights, nlls in [
        (models[0], WEIGHTS, task_nlls(2)),
        (models[1], (1, 1), task_nlls(3)[[0, 2]]),
    ]:
        expected = len(weights) * np.dot(weights, nlls) / np.sum(weights)
        error = model.losses.std(ddof=1) / np.sqrt(len(model.losses))
        assert error > 0.0
        assert abs(model.losses.mean() - expected) < 4.0 * error
    (alone,) = pretrain_nll(jobs[1:], ARCHITECTURE, replace(training, steps=80))
    np.testing.assert_allclose(alone.losses, models[1].losses[:2], rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_work_of_a_step_does_not_grow_with_the_number_of_tasks_it_draws_from() -> None:
    training = NLLTraining(steps=1, points_per_task=5, steps_per_call=1, tasks_per_step=4, group_dro_step=0.1)

    def operations(tasks: int) -> float:
        table, rows, weights, counts = tasks_of_jobs([Job(tuning_data((6,) * tasks), 0)])
        of_model = TasksOfModel(*(jnp.asarray(array[0]) for array in (rows, weights, counts)))
        state = start_training(SPACE.dimension, ARCHITECTURE, training, of_model, jnp.asarray(0))
        program = jax.jit(partial(nll_steps, training))
        compiled = program.lower(table, of_model, state, jnp.full(2, 1e-2)).compile()
        return compiled.cost_analysis()["flops"]

    few, many = operations(10), operations(400)
    # What grows is the weights' normalisation and, once per call, the count of each task's rows: for a task
    # not drawn, less than a hundredth of what the NLL of a drawn one takes.
    assert (many - few) / 390 < 0.01 * few / 4
