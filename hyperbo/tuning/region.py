"""The region to search: a user's ranges and choices, inside a prior's search space or beyond it.

A point of a region has its codes, one for each parameter of the prior (`hyperbo.data.search_space`), and its
coordinates `x`, the prior's. The codes of a point are complete: an inactive parameter has one, too, which
counts for nothing until the parameter becomes active.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.activity import with_activity
from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Value
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.axes import Choices, LevelAxis, NumberAxis, Range, axis_of, defined_unit

# Rounding up and down in every axis of a region of many discrete ones would give too many points.
_ROUNDED_AXES = 4


@dataclass(frozen=True)
class Region:
    """The allowed hyperparameters, inside a prior's search space or beyond it.

    This is the paper's Case I: the same parameters in other ranges. A range inside the prior's is a part of
    the prior's unit cube. A wider range reaches outside of it, where the prior is defined but knows little.

    Attributes:
      space: of the prior.
      axes: one for each of its parameters.
    """

    space: SearchSpace
    axes: tuple[NumberAxis | LevelAxis, ...]

    @classmethod
    def of(cls, space: SearchSpace, ranges: Mapping[str, Range | Choices | Value]) -> Region:
        """The region of some ranges, choices and fixed values; other parameters have the prior's range.

        Raises:
          InvalidInputError: a name is not in the search space, a range is empty, a value is no level that the
            prior knows, or a parameter's scaling is not defined at a value, such as the logarithm at 0.

        >>> from hyperbo.data.parameter import Parameter
        >>> space = SearchSpace((Parameter("learning_rate", 1e-4, 1.0, "log"),))
        >>> region = Region.of(space, {"learning_rate": Range(1e-2, 1.0)})
        >>> region.start.tolist(), region.width.tolist()
        ([0.5], [0.5])
        """
        unknown = ranges.keys() - set(space.names)
        if unknown:
            raise InvalidInputError(
                f"the prior has no parameter {', '.join(sorted(unknown))}",
                fix=f"its parameters are {', '.join(space.names)}",
            )
        return cls(space, tuple(axis_of(each, ranges.get(each.name)) for each in space.parameters))

    @property
    def start(self) -> Float64[np.ndarray, " d"]:
        """The smallest coordinates; 0 in the columns of levels and of activity."""
        return self._of_numbers(
            [axis.start if isinstance(axis, NumberAxis) else 0.0 for axis in self.axes], 0.0
        )

    @property
    def width(self) -> Float64[np.ndarray, " d"]:
        """The size of the region in each coordinate; 1 in the columns of levels and of activity."""
        return self._of_numbers(
            [axis.width if isinstance(axis, NumberAxis) else 1.0 for axis in self.axes], 1.0
        )

    def _of_numbers(self, values: list[float], other: float) -> Float64[np.ndarray, " d"]:
        columns = np.full(self.space.dimension, other)
        for own, axis, value in zip(self.space.slices, self.axes, values, strict=True):
            if isinstance(axis, NumberAxis):
                columns[own.start] = value
        return columns

    @property
    def is_continuous(self) -> bool:
        """Whether all parameters are continuous or fixed, and always active, so that nothing is rounded."""
        is_conditional = any(each.condition for each in self.space.parameters)
        return not is_conditional and all(axis.is_continuous for axis in self.axes)

    def codes(self, shares: Float64[np.ndarray, "n p"]) -> Float64[np.ndarray, "n p"]:
        """The allowed points at shares of the widths, of numbers, and among the levels, of choices."""
        return np.stack([axis.drawn(shares[:, i]) for i, axis in enumerate(self.axes)], axis=1)

    def shares(self, x: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n p"]:
        """Points in the prior's coordinates as shares: the inverse of `codes`; 0 along fixed values."""
        columns = []
        for own, axis in zip(self.space.slices, self.axes, strict=True):
            if isinstance(axis, NumberAxis):
                columns.append(axis.share(x[:, own.start]))
            else:
                at = axis.parameter.decode(x[:, own][:, : len(axis.parameter.columns)])
                columns.append((np.argmin(np.abs(axis.allowed - at[:, None]), axis=1) + 0.5) / axis.count)
        return np.stack(columns, axis=1)

    def moves(self, codes: Float64[np.ndarray, "n p"]) -> Bool[np.ndarray, "n d"]:
        """The coordinates of points that a climb may change: those of active numbers that are not fixed."""
        active = self.space.active(codes)
        columns = np.zeros((len(codes), self.space.dimension), bool)
        for place, (own, axis) in enumerate(zip(self.space.slices, self.axes, strict=True)):
            if isinstance(axis, NumberAxis) and axis.width > 0.0:
                columns[:, own.start] = active[:, place]
        return columns

    def every(self, limit: int) -> Float64[np.ndarray, "n p"] | None:
        """All allowed points, where they are at most `limit`; else None."""
        if math.prod(axis.count for axis in self.axes) > limit:
            return None
        return np.array(list(itertools.product(*(axis.all() for axis in self.axes))), np.float64)

    def at(self, codes: Float64[np.ndarray, " p"], x: Float64[np.ndarray, " d"]) -> Float64[np.ndarray, " p"]:
        """The codes of an allowed point whose numbers a climb has moved to coordinates `x`."""
        return np.array([next(iter(near)) for near in self._near(codes, x, 0)])

    def around(
        self, codes: Float64[np.ndarray, " p"], x: Float64[np.ndarray, " d"]
    ) -> Float64[np.ndarray, "n p"]:
        """The allowed points beside a point whose numbers a climb has moved to coordinates `x`.

        They are rounded up and down along the first discrete numbers. Then they differ from the nearest point
        in one level of one choice, or by one value along one discrete number.
        """
        rounded = list(itertools.product(*self._near(codes, x, _ROUNDED_AXES)))
        centre = self.at(codes, x)
        for place, axis in enumerate(self.axes):
            if isinstance(axis, LevelAxis) or not axis.is_continuous:
                for value in _beside(axis, float(centre[place])):
                    rounded.append((*centre[:place], value, *centre[place + 1 :]))
        return np.array(rounded, np.float64)

    def _near(
        self, codes: Float64[np.ndarray, " p"], x: Float64[np.ndarray, " d"], both: int
    ) -> Iterator[list[float]]:
        """By parameter the values beside a point: on both sides along the first `both` discrete numbers."""
        (moved,) = self.moves(codes[None])
        left = both
        for place, (own, axis) in enumerate(zip(self.space.slices, self.axes, strict=True)):
            if isinstance(axis, LevelAxis) or not moved[own.start]:
                yield [float(codes[place])]
            elif left and not axis.is_continuous:
                left -= 1
                yield axis.around(float(x[own.start]))
            else:
                yield axis.near(x[own.start : own.start + 1]).tolist()


def _beside(axis: NumberAxis | LevelAxis, value: float) -> Iterator[float]:
    """The other levels of a choice; of discrete numbers, the next smaller and larger one."""
    if isinstance(axis, LevelAxis):
        yield from (level for level in axis.all() if level != value)
    elif axis.grid is not None:
        place = int(np.argmin(np.abs(axis.grid - value)))
        yield from (float(axis.grid[i]) for i in (place - 1, place + 1) if 0 <= i < len(axis.grid))
    elif axis.span.step is not None:
        ends = axis.span.lower - 1e-9, axis.span.upper + 1e-9
        yield from (v for v in (value - axis.span.step, value + axis.span.step) if ends[0] <= v <= ends[1])


def coordinates(space: SearchSpace, codes: Float64[np.ndarray, "n p"]) -> Float64[np.ndarray, "n d"]:
    """Points given by their codes in the coordinates of a search space, also outside of its ranges.

    Raises:
      InvalidInputError: a parameter's scaling is not defined at a value, such as the logarithm at 0.

    >>> from hyperbo.data.parameter import Parameter
    >>> space = SearchSpace((Parameter("learning_rate", 1e-4, 1.0, "log"),))
    >>> coordinates(space, np.array([[1e-6]])).round(3).tolist()
    [[-0.5]]
    """
    active = space.active(codes)
    columns = []
    for place, each in enumerate(space.parameters):
        lit = active[:, place]
        if isinstance(each, Choice):
            known = each.encode(codes[:, place])
        else:
            known = np.full((len(codes), 1), 0.5)
            known[lit, 0] = defined_unit(each, codes[lit, place])
        columns.append(with_activity(each, known, lit))
    return np.concatenate(columns, axis=1)
