from __future__ import annotations

import hashlib
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hyperbo.data.parameter import Parameter, Scaling
from hyperbo.data.search_space import PD1_SEARCH_SPACE, SearchSpace
from hyperbo.errors import InvalidInputError

SPACE = SearchSpace((Parameter("rate", 1e-5, 10.0, "log"), Parameter("power", 0.1, 2.0)))


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    scaling: Scaling = draw(st.sampled_from(("linear", "log", "log1m")))
    if scaling == "log":
        lower = 10.0 ** draw(st.floats(-12.0, 3.0))
        return Parameter("p", lower, lower * 10.0 ** draw(st.floats(0.01, 9.0)), scaling)
    if scaling == "log1m":  # 1 - x between 1e-6 and 1e3
        upper = 1.0 - 10.0 ** draw(st.floats(-6.0, 1.0))
        return Parameter("p", 1.0 - (1.0 - upper) * 10.0 ** draw(st.floats(0.01, 2.0)), upper, scaling)
    lower = draw(st.floats(-1e6, 1e6))
    return Parameter("p", lower, lower + 10.0 ** draw(st.floats(-2.0, 6.0)), scaling)


@given(parameters(), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_raw_to_unit_and_back(parameter: Parameter, shares: list[float]) -> None:
    inside = parameter.lower + (parameter.upper - parameter.lower) * np.array(shares)
    raw = np.clip([parameter.lower, parameter.upper, *inside], parameter.lower, parameter.upper)
    unit = parameter.to_unit(raw)
    assert ((unit >= 0.0) & (unit <= 1.0)).all()
    assert (unit[0], unit[1]) == (0.0, 1.0)
    # Relative to the value where the scaling is logarithmic, to the range where it is linear; 1 - x is what
    # log1m scales.
    size = {
        "linear": max(abs(parameter.lower), abs(parameter.upper)),
        "log": np.abs(raw),
        "log1m": np.maximum(1.0 - raw, 1.0),
    }[parameter.scaling]
    assert (np.abs(parameter.from_unit(unit) - raw) <= 1e-12 * size).all()


@given(parameters(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_unit_to_raw_keeps_the_order_and_the_range(parameter: Parameter, one: float, other: float) -> None:
    assume(abs(one - other) > 1e-6)
    unit = np.array(sorted([one, other]))
    raw = parameter.from_unit(unit)
    assert parameter.lower <= raw[0] < raw[1] <= parameter.upper
    np.testing.assert_allclose(parameter.to_unit(raw), unit, rtol=0, atol=1e-7)


def test_scalings_by_hand() -> None:
    assert Parameter("p", 1e-4, 1.0, "log").to_unit(np.array([1e-2]))[0] == pytest.approx(0.5, rel=1e-14)
    # 1 - beta from 1 to 1e-3: beta = 0.9 is a third of the way in orders of magnitude.
    momentum = Parameter("p", 0.0, 0.999, "log1m")
    assert momentum.to_unit(np.array([0.9]))[0] == pytest.approx(1.0 / 3.0, rel=1e-12)
    assert Parameter("p", -1.0, 3.0).from_unit(np.array([0.25]))[0] == 0.0


@pytest.mark.parametrize(
    ("lower", "upper", "scaling", "message"),
    [
        (1.0, 1.0, "linear", r"parameter 'p': range \[1.0, 1.0\] is empty"),
        (2.0, 1.0, "linear", "is empty"),
        (0.0, math.inf, "linear", "not finite"),
        (math.nan, 1.0, "linear", "not finite"),
        (0.0, 1.0, "log", "positive range, got lower=0.0"),
        (0.0, 1.0, "log1m", "below 1, got upper=1.0"),
        (-1.7e308, 1.7e308, "linear", r"the width inf under linear scaling; .*closer together"),
        (1e300, math.nextafter(1e300, math.inf), "log", r"the width 0.0 under log scaling; .*further apart"),
        (-1e300, -9.99999999999999e299, "log1m", r"the width 0.0 under log1m scaling"),
    ],
)
def test_ranges_that_make_no_sense(lower: float, upper: float, scaling: Scaling, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Parameter("p", lower, upper, scaling)


def test_the_narrowest_and_the_widest_range_have_a_unit_interval() -> None:
    for lower, upper in ((1.0, math.nextafter(1.0, 2.0)), (-8e307, 8e307), (0.0, 5e-324)):
        unit = Parameter("p", lower, upper).to_unit(np.array([lower, upper]))
        np.testing.assert_array_equal(unit, [0.0, 1.0])


@pytest.mark.parametrize("value", [2.1, 0.0, math.nan, math.inf])
def test_a_value_out_of_range_is_named_by_row_and_parameter(value: float) -> None:
    raw = np.array([[0.1, 1.0], [0.1, 0.1], [0.1, value], [0.1, 99.0]])
    with pytest.raises(InvalidInputError, match=rf"^row 2: power = {value} is outside \[0.1, 2.0\]"):
        SPACE.to_unit(raw)


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        (Parameter("p", 0.0, 1.0), 1.0000002, 1.0),
        (Parameter("p", -1.0, 3.0), -1.0 - 3.9e-6, 0.0),
        (Parameter("p", -1.0, 3.0), -1.0 - 4.1e-6, None),
        # In orders of magnitude: the width is 6 ln 10, of which a millionth is a factor of 1.0000138.
        (Parameter("p", 1e-5, 10.0, "log"), 10.0001, 1.0),
        (Parameter("p", 1e-5, 10.0, "log"), 10.0002, None),
        (Parameter("p", 1e-5, 10.0, "log"), 0.0, None),
        (Parameter("p", 1e-50, 10.0, "log"), 0.0, None),
        # A float32 near a momentum of one is further away than a millionth of the width.
        (Parameter("p", 0.0, 0.999, "log1m"), float(np.float32(0.999)), 1.0),
        (Parameter("p", 0.0, 0.999, "log1m"), 0.9991, None),
        (Parameter("p", 0.0, 0.999, "log1m"), 1.0, None),
        (Parameter("p", 0.0, 1e300), 2e300, None),
        (Parameter("p", 0.0, 1.0), math.nan, None),
    ],
)
def test_a_rounding_outside_of_the_range_is_clipped(
    parameter: Parameter, value: float, expected: float | None
) -> None:
    space, raw = SearchSpace((parameter,)), np.array([[value], [parameter.upper]])
    assert space.outside(raw).tolist() == [True, False]
    if expected is None:
        with pytest.raises(InvalidInputError, match="row 0: p = "):
            space.to_unit(raw)
    else:
        assert space.to_unit(raw).tolist() == [[expected], [1.0]]


@given(st.sampled_from(PD1_SEARCH_SPACE.parameters), st.floats(0.0, 1.0))
def test_what_a_float32_makes_of_a_value_in_range_is_taken(parameter: Parameter, unit: float) -> None:
    raw = np.float64(np.float32(parameter.from_unit(np.array([unit]))))
    assert parameter.accepts(raw).all()
    assert 0.0 <= SearchSpace((parameter,)).to_unit(raw[:, None])[0, 0] <= 1.0


def test_points_that_do_not_fit_the_space() -> None:
    for convert in (SPACE.to_unit, SPACE.from_unit):
        with pytest.raises(InvalidInputError, match="3 columns, the search space has 2 "):
            convert(np.full((1, 3), 0.5))
    for value in (-1e-9, 1.0 + 1e-9, math.nan):
        with pytest.raises(InvalidInputError, match="outside the unit cube"):
            SPACE.from_unit(np.array([[0.5, value]]))


def test_a_space_needs_parameters_of_different_names() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        SearchSpace(())
    with pytest.raises(InvalidInputError, match="repeat: rate, rate"):
        SearchSpace((SPACE.parameters[0], SPACE.parameters[0]))


def test_columns_are_the_parameters_in_order() -> None:
    unit = SPACE.to_unit(np.array([[1e-5, 2.0], [10.0, 0.1]]))
    np.testing.assert_array_equal(unit, [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(SPACE.from_unit(unit), [[1e-5, 2.0], [10.0, 0.1]], rtol=1e-12)


@given(*[st.floats(allow_nan=False)] * 4)
def test_input_id_is_equal_exactly_when_the_values_are(a: float, b: float, c: float, d: float) -> None:
    one, other = {"rate": a, "power": b}, {"power": d, "rate": c}
    assert (SPACE.input_id(one) == SPACE.input_id(other)) == (one == other)
    assert SPACE.input_id(one) == SPACE.input_id({"power": b, "rate": a, "epochs": 3.0})


def test_input_id_of_neighbouring_numbers_and_of_the_two_zeros() -> None:
    def input_id(rate: float) -> str:
        return SPACE.input_id({"rate": rate, "power": 1.0})

    assert input_id(0.1) != input_id(math.nextafter(0.1, 1.0))
    assert input_id(0.0) == input_id(-0.0)
    # It is recorded in datasets: it must not change from one version of the code to the next.
    assert input_id(0.1) == hashlib.sha256(struct.pack("<2d", 0.1, 1.0)).hexdigest()[:16]


def test_json_round_trip_and_what_it_refuses() -> None:
    text = json.dumps(PD1_SEARCH_SPACE.to_json())
    assert SearchSpace.from_json(json.loads(text)) == PD1_SEARCH_SPACE
    fields = SPACE.to_json()
    with pytest.raises(InvalidInputError, match="extra is no field of type 'real'"):
        SearchSpace.from_json([fields[0] | {"extra": 1}])
    with pytest.raises(InvalidInputError, match=r"upper is missing of type 'real'"):
        SearchSpace.from_json([{"name": "rate", "lower": 0.1}])


def test_the_search_space_of_pd1_is_that_of_the_paper() -> None:
    raw = np.array([[1e-5, 0.1, 0.0, 0.01], [10.0, 2.0, 0.999, 0.99]])
    np.testing.assert_array_equal(PD1_SEARCH_SPACE.to_unit(raw), [[0.0] * 4, [1.0] * 4])
