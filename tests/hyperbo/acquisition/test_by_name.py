"""Acquisition values on plain arrays, under the default precision of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from hyperbo.acquisition import ACQUISITIONS, acquisition_values
from hyperbo.errors import InvalidInputError


@given(st.integers(0, 2**32 - 1), st.none() | st.floats(-2.0, 2.0))
@settings(max_examples=20)
def test_values_are_the_formulas_in_float64(seed: int, best: float | None) -> None:
    random = np.random.default_rng(seed)
    mean, variance, noise = random.normal(size=4), random.uniform(0.1, 2.0, 4), 0.3
    deviation = np.sqrt(variance + noise)
    z = (mean - (best or 0.0)) / deviation
    maximum = brentq(
        lambda value: norm.logcdf((value - mean) / np.sqrt(variance)).sum() - np.log(0.5),
        -9.0,
        20.0,
        xtol=1e-13,
    )
    expected = {
        "probability_of_improvement": (mean - (0.0 if best is None else best + 0.1)) / deviation,
        "expected_improvement": np.log(deviation * (norm.pdf(z) + z * norm.cdf(z))),
        "upper_confidence_bound": mean + 1.8 * deviation,
        "max_value_probability_of_improvement": (mean - maximum) / deviation,
    }
    assert set(expected) == set(ACQUISITIONS) - {"random"}
    for name, values in expected.items():
        found = acquisition_values(name, mean, variance, noise_variance=noise, best=best, coefficient=1.8)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, values, rtol=1e-10, atol=1e-10)
    found = acquisition_values(
        "probability_of_improvement", mean, variance, noise_variance=noise, best=best, threshold=0.4
    )
    target = 0.0 if best is None else best + 0.4
    np.testing.assert_allclose(found, (mean - target) / deviation, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "mean", "variance", "message"),
    [
        ("thompson", [0.0], [1.0], "unknown acquisition function"),
        ("random", [0.0, 1.0], [1.0], "one of each per candidate"),
        ("random", [], [], "one of each per candidate"),
        ("random", [0.0], [-1.0], "negative"),
        ("random", [np.nan], [1.0], "mean has a value that is not finite"),
        ("random", [0.0], [np.inf], "variance has a value that is not finite"),
        ("random", [[0.0]], [[1.0]], "mean has the shape"),
        ("random", "high", [1.0], "mean is not an array of numbers"),
    ],
)
def test_what_has_no_values_is_refused(name: str, mean: Any, variance: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        acquisition_values(name, mean, variance, noise_variance=0.1)


@pytest.mark.parametrize("name", ["noise_variance", "best"])
def test_numbers_that_are_not_finite_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} has a value that is not finite"):
        acquisition_values("random", [0.0], [1.0], **{"noise_variance": 0.1, name: np.nan})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("probability_of_improvement", [-np.inf, 0.0, np.inf]),
        ("expected_improvement", [-np.inf, np.log(0.1), np.log(2.0)]),
        ("upper_confidence_bound", [1.0, 1.1, 3.0]),
    ],
)
def test_values_where_observations_are_known_exactly_are_limits(name: str, expected: Any) -> None:
    found = acquisition_values(name, [1.0, 1.1, 3.0], np.zeros(3), noise_variance=0.0, best=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
