from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures import normalised_regret

values = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=8)


@given(values, st.floats(1e-2, 1e2), st.floats(-10.0, 10.0))
def test_scale_and_origin_of_the_values_do_not_matter(y: list[float], scale: float, origin: float) -> None:
    expected = [(1.1 - max(y[: t + 1])) / 2.6 for t in range(len(y))]
    assert_allclose(normalised_regret(y, -1.5, 1.1), expected, rtol=1e-10, atol=1e-10)
    moved = normalised_regret(scale * np.array(y) + origin, origin - 1.5 * scale, origin + 1.1 * scale)
    assert_allclose(moved, expected, rtol=1e-10, atol=1e-10)


def test_each_run_may_have_a_task_of_its_own() -> None:
    y = [[1.0, 3.0, 2.0], [2.0, 2.0, 2.0], [1.0, np.nan, 2.0]]
    found = normalised_regret(y, [0.0, 2.0, 0.0], [4.0, 2.0, 2.0])
    # The second task has no range; the third run lacks an observation.
    np.testing.assert_array_equal(found, [[0.75, 0.25, 0.25], [0.0, 0.0, 0.0], [0.5, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("y", "y_min", "y_max"),
    [
        ([0.5], 1.0, 0.0),
        ([0.5], np.nan, 1.0),
        ([0.5], 0.0, np.inf),
        ([0.5, 1.5], 0.0, 1.0),
        ([-0.5], 0.0, 1.0),
        ([[0.5, 0.5]], 0.0, [1.0, 1.0]),
        ([[0.5, 0.5]], 0.0, [[1.0]]),
    ],
)
def test_bounds_that_are_not_those_of_the_values_are_refused(y: Any, y_min: Any, y_max: Any) -> None:
    with pytest.raises(InvalidInputError):
        normalised_regret(y, y_min, y_max)
