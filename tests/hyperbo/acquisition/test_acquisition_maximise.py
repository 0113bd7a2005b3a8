from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_cases import random_gp
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.tree_util import Partial
from scipy.optimize import minimize

from hyperbo.acquisition import maximise
from hyperbo.acquisition.functions import log_expected_improvement
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import predict

KEY = jax.random.key(0)


def bowl(centre: jax.Array, weights: jax.Array, x: jax.Array) -> jax.Array:
    return -jnp.sum(weights * (x - centre) ** 2, axis=1)


def rosenbrock(x: jax.Array) -> jax.Array:
    """Maximum 0 at 3/4 in every coordinate, at the end of a curved valley."""
    x = 4.0 * x - 2.0
    return -jnp.sum(100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2, axis=1)


def ragged(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(40.0 * x) + jnp.abs(x - 0.3), axis=1)


def branin(x: jax.Array) -> jax.Array:
    a, b = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    valley = b - 5.1 / (4.0 * jnp.pi**2) * a**2 + 5.0 / jnp.pi * a - 6.0
    return -(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * jnp.pi)) * jnp.cos(a) + 10.0)


@settings(max_examples=30)
@given(st.lists(st.floats(-0.5, 1.5), min_size=3, max_size=3), st.integers(0, 5))
def test_a_bowl_is_maximised_at_the_point_of_the_cube_nearest_to_its_centre(
    centre: list[float], seed: int
) -> None:
    acquisition = Partial(bowl, np.array(centre), np.array([1.0, 30.0, 1000.0]))
    maximum = maximise(acquisition, jax.random.key(seed), 3, starts=4, iterations=60)
    np.testing.assert_allclose(maximum.x, np.clip(centre, 0.0, 1.0), rtol=0, atol=1e-6)


def test_a_curved_valley_is_followed_to_its_end() -> None:
    maximum = maximise(rosenbrock, KEY, 6, starts=8, iterations=200)
    np.testing.assert_allclose(maximum.x, 0.75, rtol=0, atol=1e-6)
    assert maximum.value == pytest.approx(0.0, abs=1e-10)


def test_several_maxima_of_equal_height_give_one_of_them() -> None:
    maximum = maximise(branin, KEY, 2, starts=8, iterations=100)
    assert maximum.value == pytest.approx(-0.397887357729738, rel=1e-12)
    maxima = np.array([[5.0 - np.pi, 12.275], [5.0 + np.pi, 2.275], [5.0 + 3.0 * np.pi, 2.475]]) / 15.0
    assert np.abs(maxima - maximum.x).max(axis=1).min() < 1e-6


def test_a_maximum_in_a_corner_is_reached_exactly() -> None:
    def slope(x: jax.Array) -> jax.Array:
        return x @ jnp.array([1e-6, -1e6])

    maximum = maximise(slope, KEY, 2, starts=3, iterations=20)
    np.testing.assert_array_equal(maximum.x, [1.0, 0.0])


def observed_problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    x, mask = random.random((6, 2)), np.array([True] * 5 + [False])
    return x, np.sin(5.0 * x[:, 0]) + x[:, 1], mask


def log_ei(gp: GaussianProcess, x: jax.Array, y: jax.Array, mask: jax.Array, at: jax.Array) -> jax.Array:
    mean, variance = predict(gp, x, y, mask, at)
    best = jnp.max(jnp.where(mask, y, -jnp.inf))
    return log_expected_improvement(mean, variance, gp.noise_variance, best)


def test_the_maximum_of_log_ei_of_a_posterior_is_that_of_scipy_from_a_grid() -> None:
    with jax.enable_x64(True):
        acquisition = Partial(log_ei, random_gp(5), *map(jnp.asarray, observed_problem()))
        maximum = maximise(acquisition, KEY, 2, starts=16, iterations=100)
        evaluate = jax.jit(acquisition)

        def loss(point: np.ndarray) -> float:
            return -float(evaluate(jnp.asarray(point[None]))[0])

        grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 20)] * 2), axis=-1).reshape(-1, 2)
        scores = np.asarray(evaluate(jnp.asarray(grid)))
        bounds = [(0.0, 1.0)] * 2
        found = max(
            -minimize(loss, grid[place], method="L-BFGS-B", bounds=bounds).fun
            for place in np.argsort(scores)[-3:]
        )
    assert maximum.value >= found - 1e-7
    assert maximum.value >= scores.max()


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_the_result_is_never_worse_than_the_best_start(iterations: int) -> None:
    with jax.enable_x64(True):
        starts = jax.random.uniform(KEY, (7, 3), jnp.float64)
        best = float(jnp.max(ragged(starts)))
    maximum = maximise(ragged, KEY, 3, starts=7, iterations=iterations)
    assert maximum.value >= best - 1e-14
    assert ((maximum.x >= 0.0) & (maximum.x <= 1.0)).all()
    if iterations == 0:
        assert maximum.value == pytest.approx(best, rel=1e-14)


def test_where_the_acquisition_is_no_number_it_is_not_maximal() -> None:
    def half(x: jax.Array) -> jax.Array:
        return jnp.where(x[:, 0] > 0.5, jnp.nan, x[:, 0])

    maximum = maximise(half, KEY, 1, starts=8, iterations=60)
    assert 0.49 < maximum.x[0] <= 0.5
    assert maximum.value == maximum.x[0]


def test_where_no_start_has_a_score_there_is_no_maximum() -> None:
    for nothing in (jnp.nan, -jnp.inf):
        acquisition = Partial(lambda value, x: value + 0.0 * x[:, 0], jnp.asarray(nothing))
        with pytest.raises(NumericalError, match="NaN or -inf at all of 2 starts"):
            maximise(acquisition, KEY, 1, starts=2, iterations=3)


def test_new_data_and_other_limits_compile_nothing_and_the_same_key_gives_the_same_result() -> None:
    traced = []

    def watched(centre: jax.Array, x: jax.Array) -> jax.Array:
        traced.append(x.shape)
        return bowl(centre, jnp.ones(2), x)

    centre = np.array([0.3, 0.9])
    first = maximise(Partial(watched, centre), KEY, 2, starts=5, iterations=30)
    times_traced = len(traced)
    moved = maximise(Partial(watched, centre / 2.0), KEY, 2, starts=5, iterations=40)
    again = maximise(Partial(watched, centre), KEY, 2, starts=5, iterations=30)
    assert len(traced) == times_traced
    np.testing.assert_allclose(moved.x, centre / 2.0, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(again.x, first.x)


@pytest.mark.parametrize(("dimension", "starts", "iterations"), [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_impossible_searches_are_refused(dimension: int, starts: int, iterations: int) -> None:
    with pytest.raises(InvalidInputError, match="maximise: dimension = "):
        maximise(rosenbrock, KEY, dimension, starts, iterations)
