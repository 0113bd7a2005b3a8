from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gp_cases as reference
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matched_block, random_gp
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.data.tuning_data import MatchedBlock
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.estimate import MatchedEstimate, estimate_root, matched_estimate
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.objectives import Estimator, ekl, euclidean, mean_ekl, wasserstein
from hyperbo.objectives.distances import squared_euclidean, squared_wasserstein, trace_of_square_root
from hyperbo.objectives.ekl import ekl_minimised

pytestmark = pytest.mark.usefixtures("x64")

Array = np.ndarray[Any, np.dtype[np.float64]]


def estimate(y: Array, ddof: int = 0) -> tuple[Array, Array]:
    return y.mean(axis=1), np.atleast_2d(np.cov(y, ddof=ddof))


def model(seed: int, inputs: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    root = random.normal(size=(inputs, inputs))
    return random.normal(size=inputs), root @ root.T + 0.5 * np.eye(inputs)


def square_root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def squared_wasserstein_by_square_roots(mean0: Array, cov0: Array, mean1: Array, cov1: Array) -> float:
    """The textbook form, by symmetric square roots of whole covariances."""
    root = square_root(cov1)
    overlap = np.trace(square_root(root @ cov0 @ root))
    return float(np.sum((mean0 - mean1) ** 2) + np.trace(cov0) + np.trace(cov1) - 2.0 * overlap)


def squared_euclidean_by_entries(mean0: Array, cov0: Array, mean1: Array, cov1: Array) -> float:
    pairs = [*zip(mean0, mean1, strict=True), *zip(cov0.ravel(), cov1.ravel(), strict=True)]
    return float(sum((a - b) ** 2 for a, b in pairs))


DISTANCES = {
    "euclidean": (euclidean, squared_euclidean, squared_euclidean_by_entries),
    "wasserstein": (wasserstein, squared_wasserstein, squared_wasserstein_by_square_roots),
}
each_distance = pytest.mark.parametrize(
    ("reported", "minimised", "formula"), DISTANCES.values(), ids=DISTANCES.keys()
)


# Estimators


@pytest.mark.parametrize("estimator", ["mle", "unbiased"])
def test_an_estimate_is_the_sample_mean_and_covariance_of_the_tasks(estimator: Estimator) -> None:
    block = matched_block(("t0", "t1", "t2", "t3"), 6, seed=1)
    expected_mean, expected = estimate(block.y, ddof=1 if estimator == "unbiased" else 0)
    padded = matched_estimate(block, 8, 5, estimator)
    assert padded.mask.tolist() == 6 * [True] + 2 * [False]
    np.testing.assert_array_equal(padded.x[:6], block.x)
    for found_mean, root in [estimate_root(block.y, estimator), (padded.mean[:6], padded.root[:6])]:
        np.testing.assert_allclose(found_mean, expected_mean, rtol=1e-12)
        np.testing.assert_allclose(root @ root.T, expected, rtol=1e-12)


@pytest.mark.parametrize(("inputs", "tasks"), [(4, 9), (6, 3), (1, 2)])
def test_unbiased_ekl_is_the_divergence_from_the_unbiased_covariance(inputs: int, tasks: int) -> None:
    (mean, covariance), y = model(0, inputs), np.random.default_rng(1).normal(size=(inputs, tasks))
    estimated_mean, estimated = estimate(y, ddof=1)
    values, vectors = np.linalg.eigh(estimated)
    basis = vectors[:, values > 1e-10 * values[-1]]
    cov0, cov1 = basis.T @ estimated @ basis, basis.T @ covariance @ basis
    difference = basis.T @ (mean - estimated_mean)
    expected = 0.5 * (
        np.trace(np.linalg.solve(cov1, cov0))
        + difference @ np.linalg.solve(cov1, difference)
        + np.linalg.slogdet(cov1)[1]
        - np.linalg.slogdet(cov0)[1]
        - basis.shape[1]
    )
    assert ekl(mean, covariance, y, "unbiased") == pytest.approx(expected, rel=1e-10)
    assert abs(ekl(*estimate(y, ddof=1), y, "unbiased")) < 1e-10


def test_one_task_has_no_unbiased_covariance() -> None:
    (mean, covariance), y = model(0, 3), np.ones((3, 1))
    for reported in (ekl, euclidean, wasserstein):
        with pytest.raises(InvalidInputError, match="one task is not defined; use the estimator 'mle'"):
            reported(mean, covariance, y, "unbiased")


@pytest.mark.parametrize(
    ("y", "estimator", "message"),
    [
        (np.zeros((0, 3)), "mle", "0 inputs on 3 tasks have no mean"),
        (np.zeros((3, 0)), "mle", "3 inputs on 0 tasks have no mean"),
        (np.array([[0.0, np.inf]]), "mle", "matched data: y is not finite"),
        (np.zeros((3, 2)), "unbiasd", "unknown estimator 'unbiasd'; use mle or unbiased"),
    ],
)
def test_what_has_no_estimate_says_so(y: Array, estimator: Any, message: str) -> None:
    unchecked: Any = inspect.unwrap(estimate_root)  # without the type checks that tests run under
    with pytest.raises(InvalidInputError, match=message):
        unchecked(y, estimator)


@pytest.mark.parametrize("estimator", ["mle", "unbiased"])
def test_what_is_minimised_and_what_is_reported_differ_by_what_no_model_moves(estimator: Estimator) -> None:
    block = matched_block(("t0", "t1", "t2", "t3", "t4", "t5", "t6"), 3, seed=5)
    padded = jax.tree.map(jnp.asarray, matched_estimate(block, 4, 8, estimator))
    compiled, differences = jax.jit(ekl_minimised), []
    for seed in (0, 1):
        gp = random_gp(seed)
        moments = reference.mean(gp, block.x), reference.noisy_covariance(gp, block.x)
        differences.append(float(compiled(gp, padded)[0]) - ekl(*moments, block.y, estimator))
    assert differences[0] == pytest.approx(differences[1], rel=1e-9)


def test_mean_ekl_is_the_average_over_blocks() -> None:
    gp = random_gp(2)
    blocks = [matched_block(("t0", "t1", "t2"), 5, seed=1), matched_block(("t0", "t1"), 2, seed=2)]
    expected = np.mean(
        [ekl(reference.mean(gp, b.x), reference.noisy_covariance(gp, b.x), b.y) for b in blocks]
    )
    assert mean_ekl(gp, blocks) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InvalidInputError, match="no matched block"):
        mean_ekl(gp, [])
    with pytest.raises(InvalidInputError, match="y is not finite"):
        mean_ekl(gp, [MatchedBlock(("a", "b"), np.zeros((1, 2)), np.array([[1.0, np.nan]]))])
    # A block of one task would count as a perfect fit.
    with pytest.raises(InvalidInputError, match="matched block: 1 tasks have no covariance; leave it out"):
        mean_ekl(gp, [*blocks, matched_block(("t0",), 3, seed=3)])


# Distances


@each_distance
@pytest.mark.parametrize(("inputs", "tasks", "ddof"), [(4, 9, 0), (6, 3, 0), (5, 2, 1), (1, 2, 1), (3, 1, 0)])
def test_the_reported_distance_is_the_textbook_formula(
    reported: Callable[..., float],
    minimised: Any,
    formula: Callable[..., float],
    inputs: int,
    tasks: int,
    ddof: int,
) -> None:
    (mean, covariance), y = model(3, inputs), np.random.default_rng(4).normal(size=(inputs, tasks))
    expected = formula(mean, covariance, *estimate(y, ddof))
    value = reported(mean, covariance, y, "unbiased" if ddof else "mle")
    # The square roots of a singular matrix lose half of the digits.
    assert value**2 == pytest.approx(expected, rel=1e-6)


@each_distance
def test_the_minimised_distance_is_the_square_of_the_reported_one_and_ignores_padding(
    reported: Callable[..., float], minimised: Any, formula: Any
) -> None:
    gp, block = random_gp(1), matched_block(("t0", "t1", "t2"), 5, seed=1)
    value_and_gradient = jax.jit(jax.value_and_grad(minimised))
    plain, padded = (
        value_and_gradient(gp, jax.tree.map(jnp.asarray, matched_estimate(block, *size)))
        for size in [(5, 3), (8, 6)]
    )
    value = reported(reference.mean(gp, block.x), reference.noisy_covariance(gp, block.x), block.y)
    assert float(plain[0]) == pytest.approx(value**2, rel=1e-9)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), padded, plain)


@each_distance
def test_the_gradient_is_that_of_finite_differences(reported: Any, minimised: Any, formula: Any) -> None:
    gp, block = random_gp(3, hidden=(3,)), matched_block(("t0", "t1", "t2"), 5, seed=3)
    of_block = jax.tree.map(jnp.asarray, matched_estimate(block, 5, 3))
    # Under vmap, as in training.
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), of_block)

    def total(gp: GaussianProcess, estimates: MatchedEstimate) -> Any:
        return 0.5 * jnp.sum(jax.vmap(minimised, in_axes=(None, 0))(gp, estimates))

    gradient = jax.jit(jax.grad(total))(gp, stacked)
    leaves, structure = jax.tree.flatten(gp)

    def moved(number: int, index: tuple[int, ...], step: float) -> float:
        other = [np.array(leaf) for leaf in leaves]
        other[number][index] += step
        gp = jax.tree.unflatten(structure, other)
        moments = reference.mean(gp, block.x), reference.noisy_covariance(gp, block.x)
        return reported(*moments, block.y) ** 2

    for number, leaf in enumerate(jax.tree.leaves(gradient)):
        for index in np.ndindex(leaf.shape):
            expected = (moved(number, index, 1e-5) - moved(number, index, -1e-5)) / 2e-5
            assert float(leaf[index]) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 8))
@settings(max_examples=40)
def test_distances_are_never_negative_zero_at_the_estimate_and_keep_the_order_of_inputs(
    seed: int, inputs: int, tasks: int
) -> None:
    (mean, covariance), random = model(seed, inputs), np.random.default_rng(seed)
    y = random.normal(size=(inputs, tasks))
    order = random.permutation(inputs)
    for distance in (euclidean, wasserstein):
        value = distance(mean, covariance, y)
        assert value > 0.0
        permuted = distance(mean[order], covariance[np.ix_(order, order)], y[order])
        assert permuted == pytest.approx(value, rel=1e-9)
    estimated_mean, estimated = estimate(y)
    assert euclidean(estimated_mean, estimated, y) < 1e-12
    # On the diagonal, so that a rank-deficient table can be factorised.
    assert wasserstein(estimated_mean, estimated + 1e-9 * np.eye(inputs), y) < 1e-3


def test_equal_tasks_are_a_point_mass() -> None:
    mean, covariance = model(7, 4)
    y = np.repeat(np.array([[0.5], [-1.0], [2.0], [0.25]]), 3, axis=1)
    expected = np.sum((mean - y[:, 0]) ** 2) + np.trace(covariance)
    assert wasserstein(mean, covariance, y) ** 2 == pytest.approx(expected, rel=1e-12)
    gp, x = random_gp(4), np.random.default_rng(4).random((4, 2))
    block = MatchedBlock(("a", "b", "c"), x, y)
    of_block = jax.tree.map(jnp.asarray, matched_estimate(block, 4, 3))
    for leaf in jax.tree.leaves(jax.jit(jax.grad(squared_wasserstein))(gp, of_block)):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize("reported", [ekl, wasserstein])
def test_a_covariance_that_is_not_positive_definite_has_no_distance(reported: Callable[..., float]) -> None:
    mean, covariance = model(5, 3)
    with pytest.raises(NumericalError, match="not positive definite"):
        reported(mean, -covariance, np.random.default_rng(5).normal(size=(3, 6)))


def test_the_trace_of_a_square_root_and_its_gradient_on_the_support() -> None:
    root = np.random.default_rng(6).normal(size=(5, 2))
    matrix = jnp.asarray(root @ root.T)  # of rank 2
    value, gradient = jax.value_and_grad(trace_of_square_root)(matrix)
    assert float(value) == pytest.approx(np.linalg.svd(root, compute_uv=False).sum(), rel=1e-7)
    # Along the matrix itself: d tr((1 + e) S)^(1/2) = e/2 tr S^(1/2).
    assert float(jnp.sum(gradient * matrix)) == pytest.approx(0.5 * float(value), rel=1e-6)
