"""Losses on plain arrays, beside independent NumPy, under the default precision of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import matern52
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError
from hyperbo.gp import GaussianProcess, Moments, posterior_moments, prior_moments
from hyperbo.objectives import ekl, ekl_parts, euclidean, mean_nll, nll, wasserstein
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import SumTraining, weighted_objective

GP = GaussianProcess.from_values(
    lengthscales=[0.4, 1.5], signal_variance=1.3, noise_variance=0.02, constant=0.3
)


def moments(x: Any) -> tuple[Any, Any]:
    return np.full(len(x), 0.3), matern52(x, x, np.array([0.4, 1.5]), 1.3) + 0.02 * np.eye(len(x))


def nll_by_hand(x: Any, y: Any) -> float:
    mean, covariance = moments(x)
    quadratic = (y - mean) @ np.linalg.solve(covariance, y - mean)
    return 0.5 * (quadratic + np.linalg.slogdet(covariance)[1] + len(y) * np.log(2.0 * np.pi))


def tasks(seed: int, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(seed)
    return [(random.random((size, 2)), random.normal(size=size)) for size in sizes]


def test_nll_is_the_dense_formula_in_float64() -> None:
    data = tasks(0, (7, 1, 4))
    found = [nll(GP, x, y) for x, y in data]
    np.testing.assert_allclose(found, [nll_by_hand(x, y) for x, y in data], rtol=1e-10)
    assert nll(GP, data[0][0].tolist(), data[0][1].tolist()) == found[0]
    # The function that training compiles does not lose digits either where it is called directly.
    assert jnp.zeros(1).dtype == jnp.float32
    with jax.enable_x64(True):
        x, y, mask = *map(jnp.asarray, data[0]), jnp.ones(7, bool)
    direct, _ = task_nll(GP, x, y, mask)
    np.testing.assert_allclose(np.asarray(direct), found[0], rtol=1e-12)


@pytest.mark.parametrize("weights", [None, (1.0, 0.0, 3.0)])
def test_mean_nll_is_the_average_over_tasks(weights: Any) -> None:
    data = tasks(1, (7, 1, 4))
    expected = np.average([nll_by_hand(x, y) for x, y in data], weights=weights)
    np.testing.assert_allclose(mean_nll(GP, data, weights), expected, rtol=1e-10)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(max_examples=20)
def test_chain_rule(seed: int, first: int) -> None:
    """p(y) = p(y_1) p(y_2 | y_1): the NLL is a sum over any division of the observations."""
    (x, y), cut = tasks(seed, (6,))[0], slice(None, first)
    rest = slice(first, None)
    mean, covariance = posterior_moments(GP, x[cut], y[cut], x[rest], noise=True)
    residual = y[rest] - mean
    quadratic = residual @ np.linalg.solve(covariance, residual)
    logarithms = np.linalg.slogdet(covariance)[1] + len(residual) * np.log(2.0 * np.pi)
    np.testing.assert_allclose(
        nll(GP, x, y), nll(GP, x[cut], y[cut]) + 0.5 * (quadratic + logarithms), rtol=1e-9
    )


@pytest.mark.parametrize(("inputs", "count", "rank"), [(4, 9, 4), (6, 3, 2)])
def test_parts_of_ekl_are_those_of_the_projected_gaussians(inputs: int, count: int, rank: int) -> None:
    random = np.random.default_rng(2)
    x, y = random.random((inputs, 2)), random.normal(size=(inputs, count))
    mean, covariance = moments(x)
    values, vectors = np.linalg.eigh(np.cov(y, bias=True))
    support = values > 1e-10 * values[-1]
    inverse_root = (vectors[:, support] / np.sqrt(values[support])).T
    projected, difference = inverse_root @ covariance @ inverse_root.T, inverse_root @ (mean - y.mean(axis=1))
    parts = ekl_parts(*prior_moments(GP, x, noise=True), y)
    expected = (
        np.trace(np.linalg.inv(projected)),
        difference @ np.linalg.solve(projected, difference),
        np.linalg.slogdet(projected)[1],
    )
    assert parts.rank == rank
    np.testing.assert_allclose((parts.trace, parts.mahalanobis, parts.log_determinant), expected, rtol=1e-10)
    np.testing.assert_allclose(parts.value, 0.5 * (sum(expected) - rank), rtol=1e-10)
    assert ekl(mean.tolist(), covariance.tolist(), y.tolist()) == pytest.approx(parts.value, rel=1e-10)
    for distance in (euclidean, wasserstein):
        found = distance(mean.tolist(), covariance.tolist(), y.tolist())
        assert found == pytest.approx(distance(mean, covariance, y), rel=1e-12)


@pytest.mark.parametrize("task_weights", [None, (1.0, 2.0)])
def test_a_weighted_sum_is_the_sum_of_its_terms(task_weights: Any) -> None:
    random, data = np.random.default_rng(3), tasks(4, (5, 3))
    blocks = [
        (random.random((inputs, 2)), random.normal(size=(inputs, count)))
        for inputs, count in [(4, 6), (5, 3)]
    ]
    weights = SumTraining(ekl=0.7, nll=0.2, squared_euclidean=0.05, squared_wasserstein=0.3)
    expected = 0.2 * np.average([nll_by_hand(x, y) for x, y in data], weights=task_weights)
    for x, y in blocks:
        # What EKL minimises equals the mean NLL of the tasks of the block.
        expected += 0.7 / 2 * np.mean([nll_by_hand(x, column) for column in y.T])
        expected += 0.05 / 2 * euclidean(*moments(x), y) ** 2 + 0.3 / 2 * wasserstein(*moments(x), y) ** 2
    np.testing.assert_allclose(
        weighted_objective(GP, data, blocks, weights, task_weights), expected, rtol=1e-10
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: nll(GP, np.zeros((0, 2)), np.zeros(0)),
        lambda: mean_nll(GP, []),
        lambda: mean_nll(GP, tasks(0, (2, 3)), [1.0]),
        lambda: mean_nll(GP, tasks(0, (2, 3)), [1.0, -1.0]),
        lambda: nll(GP, [[0.1], [0.2]], [0.0, 1.0]),
        lambda: ekl([0.0, 0.0], np.eye(3), np.zeros((2, 3))),
        lambda: ekl([np.nan, 0.0], np.eye(2), np.zeros((2, 3))),
        lambda: ekl(np.array(0.0), np.eye(2), np.zeros((2, 3))),
        lambda: ekl([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], np.zeros((2, 3))),
        lambda: wasserstein([0.0], np.eye(2), np.zeros((2, 3))),
        lambda: euclidean([0.0, 0.0], np.eye(2), np.zeros(2)),
        lambda: weighted_objective(GP, tasks(0, (2,)), []),
        lambda: weighted_objective(GP, [], [(np.zeros((2, 2)), np.ones((2, 3)))]),
        lambda: weighted_objective(GP, tasks(0, (2,)), [(np.zeros((2, 2)), np.ones((3, 3)))]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call: Any) -> None:
    with pytest.raises(InvalidInputError):
        call()


def test_moments_go_into_ekl_as_they_are() -> None:
    x, y = np.random.default_rng(5).random((3, 2)), np.random.default_rng(6).normal(size=(3, 8))
    assert ekl(*Moments(*moments(x)), y) == pytest.approx(
        ekl(*prior_moments(GP, x, noise=True), y), rel=1e-10
    )
