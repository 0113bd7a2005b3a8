from __future__ import annotations

import math
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matched_block, random_gp, tuning_data
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.data.tuning_data import MatchedBlock, pad_tasks
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.methods import GPPolicy, prior_in_use
from hyperbo.objectives import ekl
from hyperbo.objectives.ekl import ekl_minimised
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import matched_estimate

pytestmark = pytest.mark.usefixtures("x64")

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]
compiled_nll = jax.jit(task_nll)


def random_problem(seed: int, inputs: int, tasks: int) -> Problem:
    """Mean and covariance of a model, and observations."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(inputs, inputs))
    covariance = root @ root.T + 0.5 * np.eye(inputs)
    return random.normal(size=inputs), covariance, random.normal(size=(inputs, tasks))


def estimate(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (estimate_mean_cov), term by term."""
    mean = sum(y[:, i] for i in range(y.shape[1])) / y.shape[1]
    outer = sum(np.outer(y[:, i] - mean, y[:, i] - mean) for i in range(y.shape[1]))
    return mean, outer / y.shape[1]


def kl_of_gaussians(mean0: Any, covariance0: Any, mean1: Any, covariance1: Any) -> float:
    """KL(N0 || N1), both of full rank."""
    inverse, difference = np.linalg.inv(covariance1), mean1 - mean0
    log_ratio = np.linalg.slogdet(covariance1)[1] - np.linalg.slogdet(covariance0)[1]
    return 0.5 * (
        np.trace(inverse @ covariance0) + difference @ inverse @ difference + log_ratio - len(mean0)
    )


def kl_on_support(mean: np.ndarray, covariance: np.ndarray, y: np.ndarray) -> float:
    """Project both Gaussians on the leading eigenvectors of the estimate, then take the plain divergence."""
    estimated_mean, estimated_covariance = estimate(y)
    values, vectors = np.linalg.eigh(estimated_covariance)
    basis = vectors[:, values > 1e-10 * values[-1]]
    return kl_of_gaussians(
        basis.T @ estimated_mean,
        basis.T @ estimated_covariance @ basis,
        basis.T @ mean,
        basis.T @ covariance @ basis,
    )


@pytest.mark.parametrize(
    ("inputs", "tasks"), [(4, 9), (6, 6), (6, 3), (30, 5), (6, 2), (1, 2), (1, 5)], ids=lambda n: str(n)
)
def test_ekl_is_the_divergence_on_the_support(inputs: int, tasks: int) -> None:
    mean, covariance, y = random_problem(1, inputs, tasks)
    assert ekl(mean, covariance, y) == pytest.approx(kl_on_support(mean, covariance, y), rel=1e-10)


def test_ekl_of_two_tasks_by_hand() -> None:
    # mu~ = (1, 3), Sigma~ = ((1, -1), (-1, 1)): support (1, -1) / sqrt(2) with variance 2.
    y = np.array([[0.0, 2.0], [4.0, 2.0]])
    # There the standard normal has mean 0 and variance 1, the estimate mean (1 - 3) / sqrt(2).
    expected = 0.5 * (2.0 / 1.0 + 2.0 / 1.0 + math.log(1.0 / 2.0) - 1.0)
    assert ekl(np.zeros(2), np.eye(2), y) == pytest.approx(expected, rel=1e-13)


def test_ekl_does_not_depend_on_the_root_of_the_estimate() -> None:
    mean, covariance, y = random_problem(2, inputs=7, tasks=5)
    random = np.random.default_rng(2)
    # A rotation of the tasks that keeps the vector of ones keeps mean and covariance.
    basis, _ = np.linalg.qr(np.column_stack([np.ones(5), random.normal(size=(5, 4))]))
    inner, _ = np.linalg.qr(random.normal(size=(4, 4)))
    rotation = basis @ np.block([[np.ones((1, 1)), np.zeros((1, 4))], [np.zeros((4, 1)), inner]]) @ basis.T
    np.testing.assert_allclose(estimate(y @ rotation)[1], estimate(y)[1], atol=1e-13)
    assert ekl(mean, covariance, y @ rotation) == pytest.approx(ekl(mean, covariance, y), rel=1e-11)
    assert ekl(mean, covariance, y[:, ::-1].copy()) == pytest.approx(ekl(mean, covariance, y), rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 8), st.floats(-3.0, 3.0))
def test_ekl_is_never_negative_and_zero_at_the_table_prior(
    seed: int, inputs: int, tasks: int, log_scale: float
) -> None:
    mean, covariance, y = random_problem(seed, inputs, tasks)
    y = 10.0**log_scale * y
    assert ekl(mean, covariance, y) >= -1e-10
    # Directions that the estimate barely has cost the table as many digits as they are small.
    values = np.linalg.eigvalsh(estimate(y)[1])[-min(inputs, tasks - 1) :]
    assert abs(ekl(*estimate(y), y)) <= 1e-13 * values[-1] / values[0]


@pytest.mark.parametrize("tasks", [1, 2, 3, 23])
def test_ekl_of_equal_tasks_is_zero(tasks: int) -> None:
    mean, covariance, _ = random_problem(3, inputs=5, tasks=1)
    column = np.array([0.1, 1.1, -0.7, 1e3 / 3.0, 1e-3])
    y = np.repeat(column[:, None], tasks, axis=1)
    # A mean over equal tasks may differ from them in the last bit; that is no support.
    assert ekl(mean, covariance, y) == 0.0
    assert ekl(mean, covariance, np.zeros((5, tasks))) == 0.0


def test_ekl_ignores_directions_that_are_rounding() -> None:
    mean, covariance, y = random_problem(4, inputs=6, tasks=4)
    # The fourth task is the mean of the other three: rank 2, and a third singular value of rounding.
    y[:, 3] = y[:, :3].mean(axis=1)
    expected = kl_on_support(mean, covariance, y)
    assert ekl(mean, covariance, y) == pytest.approx(expected, rel=1e-10)
    assert ekl(mean, covariance, y + 1e-12) == pytest.approx(expected, rel=1e-9)


# What is minimised


@pytest.mark.parametrize(("inputs", "tasks"), [(5, 3), (3, 8), (1, 2)])
def test_minimised_ekl_is_the_mean_nll_of_the_tasks(inputs: int, tasks: int) -> None:
    gp = random_gp(0)
    block = matched_block(tuple(f"t{i}" for i in range(tasks)), inputs, seed=0)
    estimated = jax.tree.map(jnp.asarray, matched_estimate(block, inputs, tasks))
    value, jitter = jax.jit(ekl_minimised)(gp, estimated)
    mean_nll = np.mean([reference.nll(gp, block.x, block.y[:, i]) for i in range(tasks)])
    assert float(value) == pytest.approx(mean_nll, rel=1e-10)
    assert float(jitter) == 0.0

    # The same as Eq. (nondegenerate) without ln|Sigma~|, M ln(2 pi) in place of -M.
    mean, covariance = reference.mean(gp, block.x), reference.noisy_covariance(gp, block.x)
    estimated_mean, estimated_covariance = estimate(block.y)
    inverse, difference = np.linalg.inv(covariance), mean - estimated_mean
    formula = 0.5 * (
        np.trace(inverse @ estimated_covariance)
        + difference @ inverse @ difference
        + np.linalg.slogdet(covariance)[1]
        + inputs * math.log(2.0 * math.pi)
    )
    assert float(value) == pytest.approx(formula, rel=1e-10)
    if tasks > inputs:
        constant = 0.5 * (
            np.linalg.slogdet(estimated_covariance)[1] + inputs * (1.0 + math.log(2.0 * math.pi))
        )
        assert ekl(mean, covariance, block.y) == pytest.approx(formula - constant, rel=1e-9)


def test_padding_of_inputs_and_tasks_changes_neither_value_nor_gradient() -> None:
    gp, block = random_gp(1), matched_block(("t0", "t1", "t2"), 5, seed=1)
    value_and_gradient = jax.jit(jax.value_and_grad(lambda gp, e: ekl_minimised(gp, e)[0]))
    results = [
        value_and_gradient(gp, jax.tree.map(jnp.asarray, matched_estimate(block, *size)))
        for size in [(5, 3), (8, 6)]
    ]
    for plain, padded in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(padded, plain, rtol=1e-12, atol=1e-12)


def test_task_nll_is_the_density_of_scipy_and_ignores_padding_and_order() -> None:
    gp, random = random_gp(2), np.random.default_rng(2)
    x, y = random.random((6, 2)), random.normal(size=6)
    mask = np.array([True, True, False, True, False, True])
    value, _ = compiled_nll(gp, *map(jnp.asarray, (x, y, mask)))
    assert float(value) == pytest.approx(reference.nll(gp, x[mask], y[mask]), rel=1e-11)
    order = random.permutation(6)
    permuted, _ = compiled_nll(gp, *map(jnp.asarray, (x[order], y[order], mask[order])))
    assert float(permuted) == pytest.approx(float(value), rel=1e-12)


def test_gradient_in_every_parameter_is_that_of_finite_differences() -> None:
    gp, block = random_gp(3, hidden=(3,)), matched_block(("t0", "t1", "t2"), 5, seed=3)
    gradient = jax.jit(jax.grad(lambda gp, e: ekl_minimised(gp, e)[0]))(
        gp, jax.tree.map(jnp.asarray, matched_estimate(block, 5, 3))
    )
    leaves, structure = jax.tree.flatten(gp)

    def mean_nll(number: int, index: tuple[int, ...], step: float) -> float:
        moved = [np.array(leaf) for leaf in leaves]
        moved[number][index] += step
        model = jax.tree.unflatten(structure, moved)
        return float(np.mean([reference.nll(model, block.x, block.y[:, i]) for i in range(3)]))

    for number, leaf in enumerate(jax.tree.leaves(gradient)):
        for index in np.ndindex(leaf.shape):
            expected = (mean_nll(number, index, 1e-5) - mean_nll(number, index, -1e-5)) / 2e-5
            assert float(leaf[index]) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_own_code_needs_no_implicit_promotion_of_dtypes() -> None:
    gp, block = random_gp(4), matched_block(("t0", "t1"), 4, seed=4)
    padded = jax.tree.map(jnp.asarray, matched_estimate(MatchedBlock(block.tasks, block.x, block.y), 5, 3))
    x, y = jnp.asarray(block.x), jnp.asarray(block.y[:, 0])

    def simulate_one_step(policy: GPPolicy) -> Any:
        start = policy.start(x, jnp.ones(len(x), bool), 2)
        state = policy.observe(start, jnp.asarray(0), jnp.asarray(1), jnp.asarray(0.5))
        return policy.score(state, jnp.asarray(1), jax.random.key(0))

    with jax.numpy_dtype_promotion("strict"):
        traced = [
            jax.eval_shape(jax.value_and_grad(lambda gp: task_nll(gp, x, y, jnp.ones(4, bool))[0]), gp),
            jax.eval_shape(jax.value_and_grad(lambda gp: ekl_minimised(gp, padded)[0]), gp),
            jax.eval_shape(simulate_one_step, GPPolicy(prior_in_use(gp, training_tasks=2)))[1],
        ]
    assert {leaf.dtype for leaf in jax.tree.leaves(traced)} == {np.dtype(np.float64)}


def test_a_padded_batch_of_unequal_tasks_has_the_values_and_gradients_of_each_task_alone() -> None:
    gp, data = random_gp(5), tuning_data((1, 6))
    padded = pad_tasks(data.tasks)
    assert padded.x.shape == (2, 6, 2)

    def batch(gp: GaussianProcess) -> Any:
        values, _ = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, padded.x, padded.y, padded.mask)
        return jnp.sum(values), values

    (_, values), gradient = jax.jit(jax.value_and_grad(batch, has_aux=True))(gp)
    expected = [reference.nll(gp, task.x, task.y) for task in data.tasks]
    np.testing.assert_allclose(values, expected, rtol=1e-12)

    alone = jax.jit(jax.value_and_grad(lambda gp, x, y: task_nll(gp, x, y, jnp.ones(len(x), bool))[0]))
    found = [alone(gp, jnp.asarray(task.x), jnp.asarray(task.y)) for task in data.tasks]
    np.testing.assert_allclose(values, [value for value, _ in found], rtol=1e-12)
    summed = jax.tree.map(lambda *leaves: sum(leaves), *(each for _, each in found))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), gradient, summed)


def test_repeated_inputs_are_observations_like_others() -> None:
    gp, random = random_gp(6), np.random.default_rng(6)
    x = np.repeat(random.random((2, 2)), 3, axis=0)
    y = random.normal(size=(6, 2))
    value, jitter = compiled_nll(gp, *map(jnp.asarray, (x, y[:, 0], np.ones(6, bool))))
    assert float(value) == pytest.approx(reference.nll(gp, x, y[:, 0]), rel=1e-10)
    assert float(jitter) == 0.0
    moments = reference.mean(gp, x), reference.noisy_covariance(gp, x)
    assert ekl(*moments, y) == pytest.approx(kl_on_support(*moments, y), rel=1e-8)
    assert ekl(*moments, y) == pytest.approx(ekl(*moments, y[:, ::-1]), rel=1e-10)
