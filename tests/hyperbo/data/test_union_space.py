from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.data.search_space import PD1_SEARCH_SPACE, Parameter, SearchSpace
from hyperbo.data.union_space import into_union, union
from hyperbo.errors import InvalidInputError

RATE = Parameter("rate", 1e-3, 1e-1, "log")
MOMENTUM = Parameter("momentum", 0.5, 0.99, "log1m")
POWER = Parameter("power", 1.0, 2.0)
SPACE = SearchSpace((RATE, MOMENTUM, POWER))
# Another order, a wider rate, a shifted momentum, a power inside.
OTHER = SearchSpace(
    (
        Parameter("power", 1.25, 1.5),
        Parameter("rate", 1e-5, 1.0, "log"),
        Parameter("momentum", 0.0, 0.9, "log1m"),
    )
)


def test_a_union_is_the_smallest_space_around_all() -> None:
    expected = SearchSpace(
        (
            Parameter("rate", 1e-5, 1.0, "log"),
            Parameter("momentum", 0.0, 0.99, "log1m"),
            Parameter("power", 1.0, 2.0),
        )
    )
    assert union([SPACE, OTHER]) == expected
    assert union([SPACE, OTHER, SPACE]) == union([union([SPACE, OTHER]), OTHER]) == expected
    assert union([SPACE]) == SPACE
    # The order of the parameters is that of the first space.
    assert union([OTHER, SPACE]).names == ("power", "rate", "momentum")


@pytest.mark.parametrize("space", [SPACE, OTHER])
def test_a_point_keeps_its_raw_values(space: SearchSpace) -> None:
    united, x = union([SPACE, OTHER]), np.random.default_rng(0).random((50, 3))
    x[0], x[1] = 0.0, 1.0
    raw = dict(zip(space.names, space.from_unit(x).T, strict=True))
    back = dict(zip(united.names, united.from_unit(into_union(x, space, united)).T, strict=True))
    for name in space.names:
        np.testing.assert_allclose(back[name], raw[name], rtol=1e-13, atol=1e-14)


def test_a_point_is_where_the_scaling_puts_it() -> None:
    # 1e-2 is 3 of 5 decades up from 1e-5; the momentum's -ln(1 - x) runs from 0 to ln 100.
    x = into_union(np.array([[0.5, 0.5, 0.25]]), SPACE, union([SPACE, OTHER]))
    momentum = (0.5 * np.log(2.0) + 0.5 * np.log(100.0)) / np.log(100.0)
    np.testing.assert_allclose(x, [[3.0 / 5.0, momentum, 0.25]], rtol=1e-13)


def test_points_of_a_space_alone_come_back_to_the_last_bit() -> None:
    x = np.random.default_rng(1).random((100, 4))
    assert into_union(x, PD1_SEARCH_SPACE, union([PD1_SEARCH_SPACE])).tobytes() == x.tobytes()


@given(st.lists(st.tuples(st.floats(-9.0, 9.0), st.floats(0.01, 9.0)), min_size=1, max_size=4))
def test_every_space_lies_in_the_cube_of_its_union(exponents: list[tuple[float, float]]) -> None:
    spaces = [
        SearchSpace((Parameter("p", 10.0**low, 10.0 ** (low + width), "log"),)) for low, width in exponents
    ]
    united = union(spaces)
    corners = np.array([into_union(np.array([[0.0], [1.0]]), space, united)[:, 0] for space in spaces])
    assert (corners >= 0.0).all()
    assert (corners <= 1.0).all()
    assert (corners[:, 0] < corners[:, 1]).all()
    # The union is no larger than it must be.
    assert corners.min() == 0.0
    assert corners.max() == 1.0


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ([], "no search space to unite"),
        ([SPACE, SearchSpace((RATE, POWER))], "search space 1: the parameter 'momentum'"),
        ([SearchSpace((RATE, POWER)), SPACE], "search space 1: has the parameter .momentum."),
        (
            [SearchSpace((RATE,)), SearchSpace((Parameter("rate", 1e-3, 1e-1),))],
            "search space 1: rate ",
        ),
    ],
)
def test_spaces_that_cannot_be_united_say_why(spaces: list[SearchSpace], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        union(spaces)


@pytest.mark.parametrize(
    ("x", "space", "united", "message"),
    [
        (np.full((1, 3), 1.1), SPACE, SPACE, "x is no set of points of the unit cube of dimension 3"),
        (np.full((1, 3), np.nan), SPACE, SPACE, "x is no set of points"),
        (np.zeros((1, 2)), SPACE, SPACE, "x is no set of points"),
        (np.zeros((1, 3)), SPACE, OTHER, r"power is 1 to 2, linear: outside 1.25 to 1.5, linear"),
        (np.zeros((1, 3)), SPACE, SearchSpace((RATE, POWER)), "the parameter .momentum."),
        (np.zeros((1, 1)), SearchSpace((RATE,)), SPACE, "the parameter 'momentum'"),
    ],
)
def test_points_that_cannot_be_mapped_say_why(
    x: np.ndarray, space: SearchSpace, united: SearchSpace, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        into_union(x, space, united)
