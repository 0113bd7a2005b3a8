from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, make_task, matched_block, tuning_data, with_blocks
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare, multivariate_normal

from hyperbo.data.tuning_data import MatchedBlock, Provenance, TuningData
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp import prior_moments
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.methods import HNLL
from hyperbo.pretrain import (
    EKLTraining,
    Job,
    NLLTraining,
    Pretrained,
    SumTraining,
    TrainingError,
    all_trained,
    pretrain_ekl,
    pretrain_nll,
)
from hyperbo.pretrain.ekl import blocks_of_jobs, mean_ekl_minimised
from hyperbo.pretrain.task_table import draw_points

ARCHITECTURE = Architecture((4,), signal_variance=0.7, lengthscale=0.9, noise_variance=0.05)
NLL = NLLTraining(steps=40, points_per_task=5, learning_rate=1e-2, steps_per_call=20)
EKL = EKLTraining(iterations=25)
DATA = tuning_data()  # of 3, 12 and 7 points: one task has fewer than are drawn
HELD_OUT = DATA.hold_out("d1")  # without the longest task


def altered(data: TuningData, dataset: str) -> TuningData:
    """The data with other observations on the tasks of a dataset."""
    tasks = (replace(task, y=task.y[::-1] * 3.0) if task.dataset == dataset else task for task in data.tasks)
    return replace(data, tasks=tuple(tasks))


def initial(seed: int, architecture: Architecture = ARCHITECTURE) -> GaussianProcess:
    with jax.enable_x64(True):
        weight_key, _ = jax.random.split(jax.random.key(seed))
        return initialise(weight_key, SPACE.dimension, architecture)


def assert_equal_models(a: Pretrained, b: Pretrained) -> None:
    np.testing.assert_array_equal(a.losses, b.losses)
    jax.tree.map(np.testing.assert_array_equal, a.gp, b.gp)


def assert_close_models(a: Pretrained, b: Pretrained) -> None:
    np.testing.assert_allclose(a.losses, b.losses, rtol=1e-8)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8), a.gp, b.gp)


# Drawing points

draw_four = jax.jit(partial(draw_points, count=4))
SIZES = np.array([3, 9, 6])


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 40), min_size=3, max_size=3))
def test_points_are_drawn_without_replacement_and_never_from_the_padding(seed: int, sizes: list[int]) -> None:
    points, drawn = map(np.asarray, draw_four(jax.random.key(seed), jnp.array(sizes)))
    assert points.shape == drawn.shape == (3, 4)
    for row, kept, size in zip(points, drawn, sizes, strict=True):
        assert len(set(row[kept])) == kept.sum() == min(size, 4)
        assert ((row >= 0) & (row < max(size, 1))).all()


def test_every_subset_is_as_likely_as_another() -> None:
    keys = jax.random.split(jax.random.key(0), 3000)
    points = np.asarray(jax.vmap(draw_four, in_axes=(0, None))(keys, jnp.asarray(SIZES))[0])
    subsets = [tuple(sorted(one)) for one in points[:, 2]]
    names, of_draw, counts = np.unique(subsets, axis=0, return_inverse=True, return_counts=True)
    assert len(names) == 15  # 4 of 6
    assert chisquare(counts).pvalue > 1e-3
    # Every row of another task is in as many subsets as another, and tasks are drawn independently.
    held = (points[:, 1, :, None] == np.arange(9)).any(axis=1)
    np.testing.assert_allclose(held.mean(axis=0), 4 / 9, atol=4.0 * np.sqrt(20 / 81 / len(keys)))
    for row in range(9):
        table = np.zeros((15, 2))
        np.add.at(table, (of_draw.ravel(), held[:, row].astype(int)), 1)
        assert chi2_contingency(table).pvalue > 1e-4


def test_what_is_drawn_does_not_depend_on_the_padding() -> None:
    wide = np.array([*SIZES, 0, 8])
    for seed in range(5):
        key = jax.random.key(seed)
        for narrow, padded in zip(
            draw_four(key, jnp.asarray(SIZES)), draw_four(key, jnp.asarray(wide)), strict=True
        ):
            np.testing.assert_array_equal(padded[:3], narrow)
        # Fewer columns, where no task has more rows, hold the same points.
        few, kept = map(np.asarray, draw_points(key, jnp.array([3, 2]), 3))
        more, drawn = map(np.asarray, draw_four(key, jnp.array([3, 2])))
        np.testing.assert_array_equal(more[:, :3], few)
        np.testing.assert_array_equal(drawn, np.column_stack([kept, [False, False]]))


# NLL


def nll_jobs() -> list[Job]:
    return [Job(DATA, 0), Job(HELD_OUT, 0), Job(HELD_OUT, 1)]


@pytest.fixture(scope="module")
def nll_models() -> list[Pretrained]:
    return pretrain_nll(nll_jobs(), ARCHITECTURE, NLL)


def test_nll_is_deterministic_and_does_not_see_held_out_tasks(nll_models: list[Pretrained]) -> None:
    other = altered(DATA, "d1")
    again = pretrain_nll([Job(other, 0), Job(other.hold_out("d1"), 0), Job(HELD_OUT, 1)], ARCHITECTURE, NLL)
    assert_equal_models(again[1], nll_models[1])
    assert_equal_models(again[2], nll_models[2])
    assert (again[0].losses != nll_models[0].losses).all()


def test_a_model_is_the_same_alone_and_in_a_batch(nll_models: list[Pretrained]) -> None:
    (alone,) = pretrain_nll(nll_jobs()[1:2], ARCHITECTURE, NLL)
    assert_close_models(alone, nll_models[1])


def test_seeds_differ(nll_models: list[Pretrained]) -> None:
    assert (nll_models[1].losses != nll_models[2].losses).all()


def test_models_are_numpy_float64_and_described(nll_models: list[Pretrained]) -> None:
    for model in nll_models:
        assert all(
            type(leaf) is np.ndarray and leaf.dtype == np.float64 for leaf in jax.tree.leaves(model.gp)
        )
        assert model.losses.shape == (2,)
        assert model.largest_jitter == 0.0
        assert model.seconds > 0.0


def test_the_first_step_of_adam_is_the_sum_of_task_nlls_and_a_step_of_the_learning_rate() -> None:
    once = NLLTraining(steps=2, points_per_task=20, learning_rate=1e-3, steps_per_call=1)
    calls: list[tuple[int, int]] = []
    (model,) = pretrain_nll([Job(DATA, 7)], ARCHITECTURE, once, lambda *call: calls.append(call))
    start = initial(7)
    expected = sum(reference.nll(start, task.x, task.y) for task in DATA.tasks)
    assert model.losses[0] == pytest.approx(expected, rel=1e-9)
    assert model.losses[1] < model.losses[0]
    assert calls == [(0, 2), (1, 2), (2, 2)]
    # Adam's first step has the size of the learning rate in every parameter; its second at most 1.0014 of it.
    moved = jax.tree.map(lambda a, b: np.abs(np.asarray(a) - np.asarray(b)), model.gp, start)
    for leaf in jax.tree.leaves(moved):
        assert (leaf <= 2.002e-3).all()
        assert (leaf > 0.0).all()


def draw_from_known_process(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """20 inputs, observations there, and their true NLL."""
    random = np.random.default_rng(seed)
    x = random.random((20, 2))
    mean = 1.0 + 2.0 * x[:, 0]
    covariance = reference.matern52(x, x, np.array([0.5, 1.0]), 0.5) + 0.02 * np.eye(20)
    truth = multivariate_normal(mean, covariance)
    y = mean + np.linalg.cholesky(covariance) @ random.normal(size=20)
    return x, y, -float(truth.logpdf(y))


@pytest.mark.slow
def test_training_on_draws_of_a_known_process_comes_near_its_nll_on_new_draws() -> None:
    draws = [draw_from_known_process(seed) for seed in range(40)]
    tasks = tuple(make_task(f"t{i}", f"d{i}", x, y) for i, (x, y, _) in enumerate(draws[:20]))
    data = TuningData(SPACE, tasks, (), Provenance("case/known:1.0.0", "hash", "paper"))
    training = NLLTraining(steps=1000, points_per_task=20, learning_rate=1e-2, steps_per_call=500)
    (model,) = pretrain_nll([Job(data, 0)], Architecture((8,)), training)

    def mean_nll(gp: GaussianProcess) -> float:
        return float(np.mean([reference.nll(gp, x, y) for x, y, _ in draws[20:]])) / 20.0

    true = float(np.mean([nll for _, _, nll in draws[20:]])) / 20.0
    untrained = mean_nll(initial(0, Architecture((8,))))
    # In nats per observation, on tasks never seen; the network can only come near a process on raw inputs.
    assert untrained - true > 0.3
    assert mean_nll(model.gp) - true < 0.1


EXTREME = replace(HELD_OUT, tasks=(replace(DATA.tasks[0], y=np.full(3, 1e200)),))
NOT_FINITE = r"1 tasks of case/tiny:1\.0\.0 with seed 3 .* not finite"


def test_a_job_that_fails_does_not_cost_the_others_what_they_learned(nll_models: list[Pretrained]) -> None:
    jobs = [*nll_jobs()[:1], Job(EXTREME, 3), *nll_jobs()[1:]]
    with pytest.raises(TrainingError, match=rf"{NOT_FINITE}.* \(1 of a batch of 4 failed\)") as raised:
        pretrain_nll(jobs, ARCHITECTURE, NLL)
    # As a worker process hands it over.
    first, failed, *others = pickle.loads(pickle.dumps(raised.value)).outcomes
    assert isinstance(failed, NumericalError)
    for model, expected in zip([first, *others], nll_models, strict=True):
        assert_equal_models(model, expected)


def test_of_one_job_the_error_is_the_job_s() -> None:
    with pytest.raises(TrainingError, match=r"^no use$"):
        all_trained([NumericalError("no use")])
    assert all_trained([1, 2]) == [1, 2]


def test_a_method_makes_use_of_the_priors_that_are_usable() -> None:
    method = HNLL(ARCHITECTURE, NLLTraining(steps=1, steps_per_call=1))
    with pytest.raises(TrainingError, match=NOT_FINITE) as raised:
        method.fit([Job(EXTREME, 3), Job(HELD_OUT, 0)])
    failed, fitted = raised.value.outcomes
    assert isinstance(failed, NumericalError)
    assert fitted.training_tasks == len(HELD_OUT.tasks)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fitted.gp))


# EKL

BLOCKS = (
    matched_block(("t0", "t1", "t2"), 8, seed=1),
    matched_block(("t0", "t2"), 5, seed=2),
)


def ekl_jobs() -> list[Job]:
    both = with_blocks(DATA, *BLOCKS)
    return [Job(both, 0), Job(with_blocks(DATA, BLOCKS[1]), 0), Job(both.hold_out("d1"), 1)]


@pytest.fixture(scope="module")
def ekl_models() -> list[Pretrained]:
    return pretrain_ekl(ekl_jobs(), ARCHITECTURE, EKL)


def mean_nll_of_block(gp: GaussianProcess, block: MatchedBlock) -> float:
    """What is minimised on a block: the mean NLL of its tasks (tested as such with the objectives)."""
    return float(np.mean([reference.nll(gp, block.x, column) for column in block.y.T]))


def test_pre_training_lowers_the_loss_and_keeps_kernel_and_noise_positive(
    nll_models: list[Pretrained], ekl_models: list[Pretrained]
) -> None:
    for model, job in zip(nll_models, nll_jobs(), strict=True):
        before, after = (
            sum(reference.nll(gp, task.x, task.y) for task in job.training.tasks)
            for gp in (initial(job.seed), model.gp)
        )
        assert after < before - 0.5
    # The first two jobs hold the blocks as they are.
    for model, blocks in zip(ekl_models[:2], [BLOCKS, BLOCKS[1:]], strict=True):
        after = np.mean([mean_nll_of_block(model.gp, block) for block in blocks])
        assert model.losses[-1] == pytest.approx(after, rel=1e-9)
        assert after < model.losses[0] - 0.5
    for model in [*nll_models, *ekl_models]:
        assert (np.linalg.eigvalsh(prior_moments(model.gp, BLOCKS[0].x).covariance) > 0.0).all()
        assert reference.noise_variance(model.gp) > 0.0


@pytest.mark.usefixtures("x64")
def test_what_is_minimised_is_the_mean_over_blocks() -> None:
    blocks = jax.tree.map(lambda leaf: leaf[0], blocks_of_jobs(ekl_jobs()[:1], "mle"))
    value, jitter = mean_ekl_minimised(initial(0), blocks)
    expected = np.mean([mean_nll_of_block(initial(0), block) for block in BLOCKS])
    assert float(value) == pytest.approx(expected, rel=1e-9)
    assert float(jitter) == 0.0


@pytest.mark.slow
def test_ekl_is_averaged_over_blocks(ekl_models: list[Pretrained]) -> None:
    kept = BLOCKS[0].complete(["t0", "t2"])
    for model, job, blocks in zip(
        ekl_models, ekl_jobs(), [BLOCKS, BLOCKS[1:], (kept, BLOCKS[1])], strict=True
    ):
        for gp, loss in [(initial(job.seed), model.losses[0]), (model.gp, model.losses[-1])]:
            expected = np.mean([mean_nll_of_block(gp, block) for block in blocks])
            assert loss == pytest.approx(expected, rel=1e-9)
        assert len(model.losses) == EKL.iterations + 1
        assert (np.diff(model.losses) <= 1e-9 * np.abs(model.losses[:-1])).all()
        assert model.losses[-1] < model.losses[0] - 1.0


def test_ekl_is_the_same_alone_and_does_not_see_held_out_tasks(ekl_models: list[Pretrained]) -> None:
    y = BLOCKS[0].y.copy()
    y[:, 1] = 100.0
    y[2, 1] = np.nan  # diverged on the held-out task: kept for the others
    block = replace(BLOCKS[0], y=y)
    held_out = with_blocks(altered(DATA, "d1"), block, BLOCKS[1]).hold_out("d1")
    (alone,) = pretrain_ekl([Job(held_out, 1)], ARCHITECTURE, EKL)
    # L-BFGS multiplies the rounding by which programs of other shapes differ.
    np.testing.assert_allclose(alone.losses[:10], ekl_models[2].losses[:10], rtol=1e-8)
    np.testing.assert_allclose(alone.losses, ekl_models[2].losses, rtol=1e-3)


@pytest.mark.parametrize(
    ("training", "settings", "named"),
    [
        *(
            (NLLTraining, {name: 0}, name)
            for name in ("steps", "steps_per_call", "tasks_per_step", "patience")
        ),
        (NLLTraining, {"steps": 501}, "steps"),
        (NLLTraining, {"points_per_task": -1}, "points_per_task"),
        (NLLTraining, {"learning_rate": 0.0}, "learning_rate"),
        (NLLTraining, {"group_dro_step": -0.1}, "group_dro_step"),
        (NLLTraining, {"precision": "float16"}, "precision"),
        *((kind, {"iterations": 0}, "iterations") for kind in (EKLTraining, SumTraining)),
        *((kind, {"restarts": 0}, "restarts") for kind in (EKLTraining, SumTraining)),
        *((kind, {"tolerance": -1.0}, "tolerance") for kind in (EKLTraining, SumTraining)),
        (SumTraining, {"iterations_per_call": 0}, "iterations_per_call"),
        (SumTraining, {"ekl": 0.0, "nll": 0.0}, "weights"),
    ],
)
def test_settings_that_make_no_sense(training: Any, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        training(**settings)


@pytest.mark.parametrize(
    "blocks",
    [
        (),
        (matched_block(("t0", "other"), 4, seed=0),),
        (MatchedBlock(("t0", "t2"), np.zeros((1, 2)), np.array([[1.0, np.nan]])),),
    ],
    ids=["none", "one task left", "diverged everywhere"],
)
def test_a_job_without_matched_data_is_refused(blocks: tuple[MatchedBlock, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"case/tiny:1\.0\.0: no matched input .*train by NLL"):
        pretrain_ekl(
            [Job(with_blocks(DATA, BLOCKS[0]), 0), Job(with_blocks(DATA, *blocks), 0)], ARCHITECTURE, EKL
        )
