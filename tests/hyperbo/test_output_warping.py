from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError
from hyperbo.warping import WARPINGS, output_warping


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


@pytest.mark.parametrize("name", sorted(WARPINGS))
def test_the_direction_says_which_raw_value_is_better(name: str) -> None:
    warping = output_warping(name)
    lower, higher = warping.warp(np.array([0.25, 0.5]))
    assert (warping.direction == "minimize") == (lower > higher)


def test_an_unknown_warping_names_the_known_ones() -> None:
    with pytest.raises(
        InvalidInputError, match=r"unknown output warping 'log'; use one of negative_log, identity, negative"
    ):
        output_warping("log")
