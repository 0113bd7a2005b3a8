"""What float32 costs the loss of pre-training, and what it reports where it is not enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import tuning_data

from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import factorise, squared_distances
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import Job, NLLTraining, pretrain_nll

DATA = tuning_data((30, 20, 25))
ARCHITECTURE = Architecture((8,), noise_variance=0.01)
TRAINING = NLLTraining(steps=60, points_per_task=15, learning_rate=1e-2, steps_per_call=30)


def in_float32(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("noise_variance", "error"), [(1e-1, 1e-4), (1e-2, 1e-4), (1e-3, 1e-3)])
def test_the_loss_in_float32_is_near_that_in_float64_while_there_is_noise(
    noise_variance: float, error: float
) -> None:
    """Eq. (singleml), summed over tasks, of a signal variance of 1: the error grows as the noise falls."""
    architecture = Architecture((32, 32), noise_variance=noise_variance)
    nll = jax.jit(task_nll)
    for seed in range(3):
        gp = initialise(jax.random.key(seed), 2, architecture)
        expected = found = 0.0
        for task in tuning_data((50, 50), seed).tasks:
            value, jitter = nll(*in_float32((gp, task.x, task.y)), jnp.ones(50, bool))
            assert value.dtype == jitter.dtype == jnp.float32
            assert float(jitter) == 0.0
            found += float(value)
            expected += reference.nll(gp, task.x, task.y)
        assert found == pytest.approx(expected, rel=error)


@pytest.mark.usefixtures("x64")
def test_float32_distances_do_not_lose_their_digits_far_from_the_origin() -> None:
    random = np.random.default_rng(0)
    points = (7.0 + 0.1 * random.normal(size=(20, 5))).astype(np.float32)
    wide = points.astype(np.float64)
    exact = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    found = np.asarray(jax.jit(squared_distances)(jnp.asarray(points), jnp.asarray(points)))
    # Norms of 245 would leave an error of 1e-5.
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-7)


@pytest.mark.usefixtures("x64")
def test_the_jitter_of_a_float32_matrix_begins_at_its_rounding() -> None:
    eps = float(np.finfo(np.float32).eps)
    compiled = jax.jit(factorise)

    def jitter(matrix: np.ndarray) -> float:
        factor, inverse_factor, jitter = compiled(jnp.asarray(matrix, jnp.float32), jnp.ones(6, bool))
        assert np.isfinite(factor).all() == np.isfinite(inverse_factor).all()
        return float(jitter) if np.isfinite(factor).all() else float("nan")

    assert jitter(np.eye(6)) == 0.0
    for power, lowest in enumerate((-2.0 * eps, -3e-6, -3e-5)):
        matrix = np.diag([1.0] * 5 + [lowest])
        expected = 8.0 * eps * 10.0**power
        assert jitter(matrix) == pytest.approx(expected, rel=1e-6)
        # The smallest that helps: the one before it would have left the matrix indefinite.
        assert lowest + expected * np.trace(matrix) / 6 > 0.0
        assert power == 0 or lowest + 0.1 * expected < 0.0
    assert np.isnan(jitter(-np.eye(6)))


def loss(gp: GaussianProcess) -> float:
    return sum(reference.nll(gp, task.x, task.y) for task in DATA.tasks)


def test_a_training_in_float32_ends_where_that_in_float64_does() -> None:
    (double,) = pretrain_nll([Job(DATA, 0)], ARCHITECTURE, TRAINING)
    (single,) = pretrain_nll([Job(DATA, 0)], ARCHITECTURE, replace(TRAINING, precision="float32"))
    assert all(type(leaf) is np.ndarray and leaf.dtype == np.float64 for leaf in jax.tree.leaves(single.gp))
    assert single.losses.dtype == np.float64
    assert (single.losses != double.losses).all()
    np.testing.assert_allclose(single.losses, double.losses, rtol=1e-4)
    assert loss(single.gp) == pytest.approx(loss(double.gp), rel=1e-3)
    assert single.largest_jitter == double.largest_jitter == 0.0


def test_too_little_noise_for_float32_is_reported_as_jitter() -> None:
    # Ten inputs occur twice: only the noise keeps the covariance regular, and it is below float32's rounding.
    tasks = tuple(
        replace(task, x=np.concatenate([task.x[:10], task.x[:10], task.x[20:]])) for task in DATA.tasks
    )
    data = replace(DATA, tasks=tasks)
    training = NLLTraining(steps=1, points_per_task=30, steps_per_call=1, precision="float32")
    with pytest.warns(UserWarning, match=r"needed a relative jitter of \de-0[5-7]"):
        (model,) = pretrain_nll([Job(data, 0)], replace(ARCHITECTURE, noise_variance=1e-9), training)
    assert model.largest_jitter >= 8.0 * np.finfo(np.float32).eps
