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


def test_negative_log_is_its_formula_and_turns_the_order_round() -> None:
    errors = np.array([0.0, 1e-10, 0.01, 0.5, 1.0])
    y = output_warping("negative_log").warp(errors)
    np.testing.assert_allclose(y, [-math.log(error + 1e-10) for error in errors], rtol=1e-15)
    assert (np.diff(y) < 0.0).all()


def test_an_unknown_warping_names_the_known_ones() -> None:
    with pytest.raises(
        InvalidInputError, match=r"unknown output warping 'log'; use one of negative_log, identity"
    ):
        output_warping("log")
