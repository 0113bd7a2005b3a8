from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hyperbo.data.warping import INFEASIBLE, WARPINGS, online_map, output_warping


@pytest.mark.parametrize("name", sorted(WARPINGS))
@given(value=st.floats(0.0, 1e6))
def test_a_value_survives_warping_and_back(name: str, value: float) -> None:
    warping = output_warping(name)
    (found,) = warping.unwarp(warping.warp(np.array([value])))
    # The logarithm sees r + 1e-10, and is exact to about 2e-16 of itself.
    assert found == pytest.approx(value, rel=1e-13, abs=1e-22)


@pytest.mark.parametrize("name", sorted(WARPINGS))
@given(value=st.floats(0.0, 1e6), share=st.floats(1e-12, 1.0))
def test_warpings_are_strictly_monotone(name: str, value: float, share: float) -> None:
    warping = output_warping(name)
    lower, higher = warping.warp(np.array([value, value + share * (value + 1e-10)]))
    assert (higher - lower) * (-1.0 if warping.direction == "minimize" else 1.0) > 0.0


def test_negative_log_is_its_formula_and_turns_the_order_round() -> None:
    errors = np.array([0.0, 1e-10, 0.01, 0.5, 1.0])
    y = output_warping("negative_log").warp(errors)
    np.testing.assert_allclose(y, [-math.log(error + 1e-10) for error in errors], rtol=1e-15)
    assert (np.diff(y) < 0.0).all()


def test_negative_turns_the_sign_and_keeps_every_bit_of_a_huge_loss() -> None:
    losses = np.array([-2.5, 0.0, 0.1, 1.234567890123456e18])
    y = output_warping("negative").warp(losses)
    assert y.tolist() == [2.5, 0.0, -0.1, -1.234567890123456e18]
    assert output_warping("negative").unwarp(y).tolist() == losses.tolist()


def online_map_by_hand(values: np.ndarray) -> np.ndarray:
    """The equation of section "Results on the PD1 Online Hyperparameter Tuning Tasks", of feasible values."""

    def softplus(z: np.ndarray) -> np.ndarray:
        return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))

    centred = values - np.median(values)
    return softplus(centred) / softplus(centred.max()) * 4 - 2


values_of_a_task = hnp.arrays(np.float64, st.integers(1, 9), elements=st.floats(-30.0, 30.0))


@given(values=values_of_a_task, hidden=st.integers(0, 4), seed=st.integers(0, 99))
def test_the_online_map_is_its_equation_over_the_feasible_values(
    values: np.ndarray, hidden: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(values) + hidden)
    y = np.append(values, np.full(hidden, np.nan))[order]
    feasible = np.isfinite(y)
    mapped = online_map(y, feasible)
    np.testing.assert_allclose(mapped[feasible], online_map_by_hand(y[feasible]), rtol=1e-12, atol=1e-12)
    assert (mapped[~feasible] == INFEASIBLE).all()


@given(values=values_of_a_task)
def test_the_online_map_is_monotone_and_ends_at_two(values: np.ndarray) -> None:
    mapped = online_map(values, np.ones(len(values), bool))
    assert (mapped >= -2.0).all()
    assert (mapped <= 2.0).all()
    assert (mapped[values == values.max()] == 2.0).all()
    assert (np.diff(mapped[np.argsort(values)]) >= 0.0).all()


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([math.nan, math.nan], [-2.0, -2.0]),
        ([math.nan, -7.0], [-2.0, 2.0]),
        ([3.0, 3.0, 3.0], [2.0, 2.0, 2.0]),
        ([3.0, -math.inf], [2.0, -2.0]),
    ],
    ids=["none feasible", "one", "all equal", "infinite where infeasible"],
)
def test_the_ends_of_the_online_map(y: list[float], expected: list[float]) -> None:
    array = np.array(y)
    assert online_map(array, np.isfinite(array)).tolist() == expected


def test_compiled_the_online_map_serves_any_number_of_trials() -> None:
    y = np.array([0.4, -1.0, np.nan, 2.5, 0.1, -3.0])
    with jax.enable_x64(True):
        compiled = jax.jit(online_map)
        for seen in range(len(y) + 1):
            feasible = np.isfinite(y) & (np.arange(len(y)) < seen)
            found = np.asarray(compiled(jnp.asarray(y), jnp.asarray(feasible)))
            np.testing.assert_allclose(found, online_map(y, feasible), rtol=1e-13, atol=1e-13)
        assert compiled._cache_size() == 1
