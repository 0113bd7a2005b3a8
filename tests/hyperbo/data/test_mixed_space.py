"""Search spaces of integers, choices, ordinals, booleans, constants and conditions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.data import Choice, Condition, Parameter, SearchSpace, into_union, union
from hyperbo.data.parameter_json import parameter_of
from hyperbo.errors import InvalidInputError

SPACE = SearchSpace(
    (
        Parameter("momentum", 0.0, 0.99, "log1m", condition=Condition("optimizer", ("sgd", "rmsprop"))),
        Parameter("width", 16, 512, "log", integer=True, role="width"),
        Choice("activation", ("relu", "tanh", "gelu")),
        Choice("optimizer", ("sgd", "adam", "rmsprop")),
        Choice("nesterov", (False, True), condition=Condition("momentum", lower=0.5)),
        Choice("batch", (32, 64.5, 128), ordered=True),
        Choice("epochs", (10,)),
        Choice("noise", ("low", "high"), condition=Condition("batch", lower=60, upper=70)),
    )
)
VALUES: dict[str, Any] = {"width": 64, "activation": "tanh", "optimizer": "adam", "batch": 32, "epochs": 10}


@st.composite
def points(draw: st.DrawFn) -> dict[str, Any]:
    """A point of the space."""
    values = {
        "width": draw(st.integers(16, 512)),
        "activation": draw(st.sampled_from(["relu", "tanh", "gelu"])),
        "optimizer": draw(st.sampled_from(["sgd", "adam", "rmsprop"])),
        "batch": draw(st.sampled_from([32, 64.5, 128])),
        "epochs": 10,
    }
    if values["optimizer"] != "adam":
        values["momentum"] = draw(st.floats(0.0, 0.99))
        if values["momentum"] >= 0.5:
            values["nesterov"] = draw(st.booleans())
    if values["batch"] == 64.5:
        values["noise"] = draw(st.sampled_from(["low", "high"]))
    return values


def plain_x(values: dict[str, Any]) -> list[float]:
    """The columns of x, written down one by one."""
    momentum, nesterov = values.get("momentum"), values.get("nesterov")
    return [
        0.5 if momentum is None else np.log(1.0 - momentum) / np.log(0.01),
        float(momentum is not None),
        np.log(values["width"] / 16) / np.log(32),
        *(float(values["activation"] == each) for each in ("relu", "tanh", "gelu")),
        *(float(values["optimizer"] == each) for each in ("sgd", "adam", "rmsprop")),
        0.5 if nesterov is None else float(nesterov),
        float(nesterov is not None),
        {32: 0.0, 64.5: 0.5, 128: 1.0}[values["batch"]],
        {"low": 0.0, "high": 1.0, None: 0.5}[values.get("noise")],
        float("noise" in values),
    ]


@given(points())
def test_values_codes_and_coordinates_are_one_point(values: dict[str, Any]) -> None:
    codes = SPACE.codes([values])
    assert SPACE.values(codes) == [values]
    assert {type(each) for each in SPACE.values(codes)[0].values()} <= {int, float, str, bool}
    x = SPACE.to_unit(codes)
    np.testing.assert_allclose(x, [plain_x(values)], atol=1e-12)
    again = SPACE.from_unit(x)
    np.testing.assert_allclose(again, codes, rtol=1e-9)
    assert SPACE.values(again)[0].keys() == values.keys()
    assert SPACE.outside(codes).tolist() == [False]


@given(st.lists(st.floats(0.0, 1.0), min_size=14, max_size=14))
def test_every_point_of_the_cube_stands_for_a_point_of_the_space(unit: list[float]) -> None:
    codes = SPACE.from_unit(np.array([unit]))
    (values,) = SPACE.values(codes)
    assert type(values["width"]) is int
    assert np.array_equal(SPACE.active(codes), ~np.isnan(codes))
    x = SPACE.to_unit(codes)
    # The projection is one: what it gives stays.
    np.testing.assert_allclose(SPACE.to_unit(SPACE.from_unit(x)), x, atol=1e-12)


def test_columns_have_names() -> None:
    assert SPACE.columns == (
        *("momentum", "momentum:active", "width", "activation=relu", "activation=tanh", "activation=gelu"),
        *("optimizer=sgd", "optimizer=adam", "optimizer=rmsprop", "nesterov", "nesterov:active", "batch"),
        *("noise", "noise:active"),
    )
    assert SPACE.dimension == 14


def test_json_round_trip() -> None:
    assert SearchSpace.from_json(json.loads(json.dumps(SPACE.to_json()))) == SPACE


def test_input_ids_differ_where_values_do() -> None:
    other = [{"activation": "relu"}, {"width": 65}, {"optimizer": "sgd", "momentum": 0.1}, {"batch": 128}]
    ids = {SPACE.input_id(VALUES | changes) for changes in [{}, *other]}
    assert len(ids) == len(other) + 1
    # As an integer or as a float: the same number.
    assert SPACE.input_id(VALUES | {"width": 64.0}) == SPACE.input_id(VALUES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 64.5}, "width = 64.5 is not a whole number; correct it, or declare the parameter as real"),
        ({"width": True}, "width = True is not a number"),
        ({"width": 10**400}, "is too large; give at most 2\\^53"),
        ({"width": 8}, r"width = 8 is outside \[16, 512\]"),
        ({"activation": "swish"}, "activation = 'swish' is none of its levels 'relu', 'tanh', 'gelu'"),
        ({"activation": 3}, "activation = 3 is none of its levels"),
        (
            {"optimizer": "sgd"},
            "momentum has no value, although it is active: optimizer is 'sgd' or 'rmsprop'",
        ),
        (
            {"optimizer": "sgd", "momentum": 0.9, "nesterov": 1},
            "nesterov = 1 is none of its levels False, True",
        ),
        ({"depth": 3}, "unknown hyperparameters: depth"),
    ],
)
def test_values_that_are_none(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SPACE.codes([VALUES | changes])


def test_a_value_of_an_inactive_parameter_does_not_count() -> None:
    assert SPACE.values(SPACE.codes([VALUES | {"momentum": 0.9, "nesterov": True}])) == [VALUES]


A, B = Parameter("a", 0.0, 1.0), Choice("b", ("x", "y"))


def conditional(name: str, *condition: Any, **bounds: Any) -> Parameter:
    return Parameter(name, 0.0, 1.0, condition=Condition(*condition, **bounds))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((A, conditional("c", "d", ("x",))), "parameter 'c': condition: there is no parameter 'd'"),
        ((conditional("c", "d", lower=0.1), conditional("d", "c", lower=0.1)), "c, d go round in a circle"),
        ((conditional("c", "c", lower=0.1),), "a parameter is its own parent"),
        ((B, conditional("c", "b", ("z",))), "'c': condition: b = 'z' is none of its levels 'x', 'y'"),
        ((B, conditional("c", "b", lower=0.0)), "has bounds, but its parent is a choice"),
        ((A, conditional("c", "a", (0.5,))), "names values of a real parameter; give lower or upper"),
        ((Choice("epochs", (3,)),), "all parameters are constants"),
        ((Choice("b", ("x", "y", "z")), Parameter("b=x", 0.0, 1.0)), "names of columns repeat"),
    ],
)
def test_spaces_that_contradict_themselves(parameters: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SearchSpace(parameters)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "choice"}, "levels is missing of type 'choice'; its fields are levels"),
        ({"type": "choice", "levels": ["a"], "lower": 1}, "lower is no field of type 'choice'"),
        ({"type": "category", "levels": ["a"]}, "unknown type 'category'"),
        ({"type": "choice", "levels": []}, "0 levels; give at least one"),
        ({"type": "choice", "levels": ["a", 1]}, "are of mixed types; give texts only, numbers only"),
        ({"type": "choice", "levels": ["a", "a"]}, "a level comes twice"),
        ({"type": "choice", "levels": ["a", ""]}, "'' cannot be a level"),
        ({"type": "choice", "levels": ["a\u202eb", "c"]}, "cannot be a level"),
        ({"type": "choice", "levels": [1.0, float("nan")]}, "nan cannot be a level"),
        ({"type": "integer", "lower": 0.5, "upper": 3}, "of an integer; give whole numbers"),
        ({"type": "boolean", "condition": {"parameter": "a"}}, "needs either values or bounds"),
        ({"lower": "0", "upper": 1}, "lower is '0'; give a finite number"),
        ({"type": "choice", "levels": "abc"}, "levels is 'abc'; give a list of texts or numbers"),
        ({"type": "choice", "levels": ["a", None]}, "give a list of texts or numbers"),
        ({"type": "choice", "levels": [10**30, 2]}, "cannot be a level; give finite numbers"),
        ({"type": "choice", "levels": [2**53, 2**53 + 1]}, "9007199254740993 cannot be a level"),
        ({"lower": 0, "upper": 10**400}, "give a finite number"),
        (
            {"type": "boolean", "condition": {"parameter": "a", "values": "sg"}},
            "the condition is {'parameter'",
        ),
        ({"type": "boolean", "condition": {"parameter": "a", "lower": "2"}}, "numbers as lower and upper"),
        ({"type": "boolean", "condition": {"parameter": "a", "lower": 2, "upper": 1}}, "is never met"),
    ],
)
def test_parameters_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parameter_of("p", **fields)


def test_a_union_has_the_levels_of_all() -> None:
    one = SearchSpace((Choice("b", ("x", "y")), Parameter("n", 1, 4, integer=True)))
    two = SearchSpace((Choice("b", ("y", "z")), Parameter("n", 2, 8, integer=True)))
    both = union([one, two])
    assert both.parameters == (Choice("b", ("x", "y", "z")), Parameter("n", 1, 8, integer=True))
    for space, values in ((one, {"b": "y", "n": 4}), (two, {"b": "z", "n": 2})):
        moved = into_union(space.to_unit(space.codes([values])), space, both)
        assert both.values(both.from_unit(moved)) == [values]
        np.testing.assert_allclose(moved, both.to_unit(both.codes([values])), atol=1e-12)
    real = SearchSpace((Choice("b", ("x", "y")), Parameter("n", 1.0, 4.0)))
    with pytest.raises(
        InvalidInputError, match="n is real, elsewhere integer; declare it alike in all tasks"
    ):
        union([one, real])


def test_a_union_of_conditional_constants_and_of_long_ordinals() -> None:
    parent = Choice("p", ("u", "v"))
    spaces = [
        SearchSpace((parent, Choice("a", (level,), condition=Condition("p", ("u",))))) for level in "rs"
    ]
    both = union(spaces)
    moved = into_union(np.array([[0.0], [1.0]]), spaces[1], both)
    np.testing.assert_array_equal(moved, [[0.0, 1.0, 1.0], [1.0, 0.5, 0.0]])
    orders = [(*range(8), 8, 9), (*range(8), 9, 8)]
    with pytest.raises(InvalidInputError, match="is an ordinal of"):
        union([SearchSpace((Choice("n", order, ordered=True),)) for order in orders])
    flags = union([SearchSpace((parent, Choice("f", (level,)))) for level in (True, False)])
    assert flags.parameter("f").type == "boolean"
