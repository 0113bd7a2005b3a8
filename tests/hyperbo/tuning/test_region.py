"""Regions: ranges, steps and choices in the coordinates of a prior's search space."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from hyperbo.data.search_space import PD1_SEARCH_SPACE, Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.region import Choices, Range, Region, coordinates

RATE = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"),))
TWO = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"), Parameter("units", 0.0, 100.0)))


def around(region, t):
    """The allowed points beside a point that a climb has reached."""
    return region.around(region.codes(t)[0], (region.start + region.width * t)[0])


def test_the_whole_space_is_the_unit_cube():
    region = Region.of(PD1_SEARCH_SPACE, {})
    np.testing.assert_allclose(region.start, 0.0, atol=1e-15)
    np.testing.assert_allclose(region.width, 1.0, atol=1e-15)
    assert region.is_continuous
    t = np.random.default_rng(0).uniform(size=(20, 4))
    np.testing.assert_allclose(region.codes(t), PD1_SEARCH_SPACE.from_unit(t), rtol=1e-12)


@given(
    st.tuples(st.floats(-9, 3), st.floats(-9, 3)).filter(lambda ends: ends[1] - ends[0] > 1e-3),
    st.floats(0, 1),
)
def test_a_range_inside_or_beyond_the_priors_keeps_raw_values(exponents, share):
    """Case I of "Different search spaces": raw values have one place, whatever range they are taken from."""
    lower, upper = (10.0**each for each in exponents)
    region = Region.of(RATE, {"rate": Range(lower, upper)})
    raw = region.codes(np.array([[share]]))
    assert lower <= raw[0, 0] <= upper
    expected = (np.log(raw) - np.log(1e-4)) / (np.log(1.0) - np.log(1e-4))
    np.testing.assert_allclose(region.start + region.width * share, expected[0], atol=1e-9)
    np.testing.assert_allclose(coordinates(RATE, raw), expected, atol=1e-12)
    np.testing.assert_allclose(region.shares(expected), [[share]], atol=1e-6)


@given(st.integers(-5, 90), st.integers(0, 60), st.integers(1, 7), st.floats(0, 1))
def test_steps_are_kept(lower, width, step, share):
    region = Region.of(TWO, {"units": Range(float(lower), float(lower + width), float(step))})
    t = np.array([[0.5, share]])
    values = [region.codes(t)[0, 1], *around(region, t)[:, 1]]
    for value in values:
        assert lower <= value <= lower + width
        assert (value - lower) % step == 0
    # The unrounded value lies between the two that are around it.
    unrounded = lower + width * share
    last = lower + step * (width // step)
    assert min(values[1:]) <= min(unrounded, last) + 1e-6
    assert max(values[1:]) >= min(unrounded, last) - 1e-6


@given(st.sets(st.sampled_from([1e-4, 1e-3, 5e-3, 0.1, 1.0, 10.0]), min_size=1), st.floats(0, 1))
def test_choices_are_the_nearest_under_the_scaling(values, share):
    region = Region.of(TWO, {"rate": Choices(tuple(values))})
    t = np.array([[share, 0.5]])
    chosen = region.codes(t)[0, 0]
    assert chosen in values
    logs = {value: np.log(value) for value in values}
    wanted = min(logs.values()) + share * (max(logs.values()) - min(logs.values()))
    nearest = min(abs(each - wanted) for each in logs.values())
    assert abs(logs[chosen] - wanted) <= nearest + 1e-9
    assert set(around(region, t)[:, 0]) <= values


def test_a_fixed_value_stays():
    region = Region.of(TWO, {"units": 7.0})
    assert region.is_continuous
    assert region.codes(np.array([[0.0, 0.9]]))[0, 1] == 7.0
    assert region.shares(np.array([[0.3, 0.07]]))[0, 1] == 0.0


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"depth": Range(1.0, 2.0)}, "no parameter depth; its parameters are rate, units"),
        ({"rate": Range(0.0, 1.0)}, "rate = 0.0; give a finite value above 0"),
        ({"units": Range(3.0, 2.0)}, "parameter 'units': Range.* is empty"),
        ({"units": Range(1.0, 2.0, 0.0)}, "is empty; give lower <= upper, and a positive step"),
        ({"units": Choices(())}, "parameter 'units': no value to choose from"),
    ],
)
def test_what_cannot_be_placed_is_said(ranges, message):
    with pytest.raises(InvalidInputError, match=message):
        Region.of(TWO, ranges)
