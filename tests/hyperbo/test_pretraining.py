from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import SPACE, make_task, matched_block, tuning_data, with_blocks
from scipy.stats import chisquare, multivariate_normal

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.pretrain import (
    EKLTraining,
    Job,
    NLLTraining,
    Pretrained,
    SumTraining,
    pretrain_ekl,
    pretrain_nll,
)
from hyperbo.pretrain.task_table import draw_points
from hyperbo.tuning_data import MatchedBlock, Provenance, TuningData

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


@pytest.fixture(scope="module")
def draws() -> tuple[np.ndarray, np.ndarray]:
    """2000 draws of 4 of 3, 9 and 6 rows."""
    mask = np.arange(9) < np.array([[3], [9], [6]])
    keys = jax.random.split(jax.random.key(0), 2000)
    points, drawn = jax.vmap(lambda key: draw_points(key, jnp.asarray(mask), 4))(keys)
    return np.asarray(points), np.asarray(drawn)


def test_points_are_drawn_without_replacement_and_never_from_the_padding(
    draws: tuple[np.ndarray, np.ndarray],
) -> None:
    points, drawn = draws
    for task, size in enumerate((3, 9, 6)):
        assert (drawn[:, task].sum(axis=1) == min(size, 4)).all()
        for one, kept in zip(points[:, task], drawn[:, task], strict=True):
            assert len(set(one[kept])) == kept.sum()
            assert (one[kept] < size).all()


def test_every_subset_is_as_likely_as_another(draws: tuple[np.ndarray, np.ndarray]) -> None:
    points, _ = draws
    subsets = [tuple(sorted(one)) for one in points[:, 2]]
    names, counts = np.unique(subsets, axis=0, return_counts=True)
    assert len(names) == 15  # 4 of 6
    assert chisquare(counts).pvalue > 1e-3
    # Two tasks are drawn independently: 9 x 9 pairs of their first points.
    pairs = points[:, 1, 0] * 6 + points[:, 2, 0]
    assert chisquare(np.bincount(pairs, minlength=54)).pvalue > 1e-3


def test_what_is_drawn_does_not_depend_on_the_padding() -> None:
    mask = np.arange(9) < np.array([[3], [9], [6]])
    wide = np.zeros((5, 20), bool)
    wide[:3, :9] = mask
    for seed in range(5):
        narrow_points, narrow = draw_points(jax.random.key(seed), jnp.asarray(mask), 4)
        wide_points, drawn = draw_points(jax.random.key(seed), jnp.asarray(wide), 4)
        np.testing.assert_array_equal(drawn[:3], narrow)
        np.testing.assert_array_equal(
            np.where(drawn[:3], wide_points[:3], -1), np.where(narrow, narrow_points, -1)
        )


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


@pytest.mark.parametrize("count", [1, 4])
def test_any_number_of_devices_gives_what_two_give(nll_models: list[Pretrained], count: int) -> None:
    program = """
import json, jax
from test_pretraining import ARCHITECTURE, NLL, nll_jobs
from hyperbo.pretrain import pretrain_nll
models = pretrain_nll(nll_jobs(), ARCHITECTURE, NLL)
print(json.dumps([jax.device_count(), [list(model.losses) for model in models]]))
"""
    tests = Path(__file__).parent
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "PYTHONPATH": os.pathsep.join(map(str, (tests.parents[1], tests.parent, tests))),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    devices, losses = json.loads(done.stdout)
    assert (devices, jax.device_count()) == (count, 2)
    np.testing.assert_allclose(losses, [model.losses for model in nll_models], rtol=1e-8)


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


def test_values_that_overflow_end_in_an_error_that_names_the_training_set() -> None:
    task = DATA.tasks[0]
    extreme = replace(HELD_OUT, tasks=(replace(task, y=np.full(3, 1e200)),))
    with pytest.raises(NumericalError, match=r"1 tasks of case/tiny:1\.0\.0 with seed 3 .* not finite"):
        pretrain_nll([Job(extreme, 3)], ARCHITECTURE, NLLTraining(steps=1, steps_per_call=1))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("steps", 0),
        ("points_per_task", -1),
        ("learning_rate", 0.0),
        ("steps_per_call", 0),
        ("steps", 501),
        ("tasks_per_step", 0),
        ("group_dro_step", -0.1),
        ("stop_after", 0),
    ],
)
def test_settings_that_make_no_sense(setting: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=setting):
        replace(NLLTraining(), **{setting: value})
    for training in (EKLTraining, SumTraining):
        with pytest.raises(InvalidInputError, match="iterations"):
            training(iterations=0)
        with pytest.raises(InvalidInputError, match="restarts"):
            training(restarts=0)
        with pytest.raises(InvalidInputError, match="tolerance"):
            training(tolerance=-1.0)
    with pytest.raises(InvalidInputError, match=r"weights .*not all 0"):
        SumTraining(ekl=0.0, nll=0.0)
    with pytest.raises(InvalidInputError, match="hidden"):
        Architecture(hidden=(4, 0))
    with pytest.raises(InvalidInputError, match="lengthscale"):
        Architecture(lengthscale=float("nan"))


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
