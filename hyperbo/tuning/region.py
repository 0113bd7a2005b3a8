"""The region to search: a user's ranges and choices, in the coordinates of a prior's search space."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError

# Rounding up and down in every axis of a region of many discrete ones would give too many points.
_ROUNDED_AXES = 4
_DEFINED = {
    "linear": "give a finite value",
    "log": "give a finite value above 0",
    "log1m": "give a finite value below 1",
}


@dataclass(frozen=True)
class Range:
    """The values from `lower` to `upper`; with a step, only `lower`, `lower + step`, and so on."""

    lower: float
    upper: float
    step: float | None = None


@dataclass(frozen=True)
class Choices:
    """A set of values, in any order."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class _Axis:
    """The values that one parameter may take, in the unit interval of the prior.

    The width is 0 where the value is fixed. `grid` has all allowed values; it is None for a range. `span` is
    lower, upper and step in raw units.
    """

    parameter: Parameter
    start: float
    width: float
    grid: Float64[np.ndarray, " values"] | None
    span: Range

    def raw(self, t: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The allowed raw values nearest to points of the region, each from 0 to 1 along the width."""
        if self.width == 0.0:
            return np.full(len(t), self.span.lower)
        unit = self.start + self.width * t
        if self.grid is not None:
            coordinates = self.parameter.to_unit(self.grid)
            return self.grid[np.argmin(np.abs(coordinates - unit[:, None]), axis=1)]
        return self._on_step(self.parameter.raw_value(unit))

    def around(self, t: float) -> list[float]:
        """The allowed values on both sides of a point, from 0 to 1 along the width; one if continuous."""
        (raw,) = self.parameter.raw_value(np.array([self.start + self.width * t]))
        if self.grid is not None:
            after = int(np.searchsorted(self.grid, raw))
            return self.grid[max(after - 1, 0) : after + 1].tolist()
        if self.span.step is None or self.width == 0.0:
            return self.raw(np.array([t])).tolist()
        steps = (raw - self.span.lower) / self.span.step
        near = self.span.lower + self.span.step * np.array([np.floor(steps), np.ceil(steps)])
        return np.unique(self._on_step(near)).tolist()

    def _on_step(self, raw: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        lower, upper, step = self.span.lower, self.span.upper, self.span.step
        if step is not None:
            last = np.floor((upper - lower) / step + 1e-9)
            raw = lower + step * np.clip(np.round((raw - lower) / step), 0.0, last)
        return np.clip(raw, lower, upper)


@dataclass(frozen=True)
class Region:
    """The allowed hyperparameters, inside a prior's search space or beyond it, with a unit cube of its own.

    This is the paper's Case I: the same parameters in other ranges. A range inside the prior's is a part of
    the prior's unit cube. A wider range reaches outside of it, where the prior is defined but knows little.

    Attributes:
      space: of the prior.
      axes: one for each of its parameters.
    """

    space: SearchSpace
    axes: tuple[_Axis, ...]

    @classmethod
    def of(cls, space: SearchSpace, ranges: Mapping[str, Range | Choices | float]) -> Region:
        """The region of some ranges, choices and fixed values; other parameters have the prior's range.

        Raises:
          InvalidInputError: a name is not in the search space, a range is empty, or a parameter's scaling is
            not defined at a value, such as the logarithm at 0.

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
        whole = {each.name: Range(each.lower, each.upper) for each in space.parameters}
        return cls(space, tuple(_axis(each, {**whole, **ranges}[each.name]) for each in space.parameters))

    @property
    def start(self) -> Float64[np.ndarray, " d"]:
        """The prior's coordinates of the corner of smallest values."""
        return np.array([axis.start for axis in self.axes])

    @property
    def width(self) -> Float64[np.ndarray, " d"]:
        """The size of the region in each coordinate of the prior."""
        return np.array([axis.width for axis in self.axes])

    @property
    def is_continuous(self) -> bool:
        """Whether all parameters are continuous or fixed, so that nothing has to be rounded."""
        return all(axis.grid is None and axis.span.step is None for axis in self.axes)

    def raw(self, t: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
        """Raw values of points of the region's unit cube, rounded to allowed values."""
        return np.stack([axis.raw(t[:, i]) for i, axis in enumerate(self.axes)], axis=1)

    def own(self, x: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
        """Points in the prior's coordinates as points of the region's unit cube; 0 along fixed values."""
        width = np.where(self.width > 0.0, self.width, np.inf)
        return (x - self.start) / width

    def around(self, t: Float64[np.ndarray, " d"]) -> Float64[np.ndarray, "n d"]:
        """The allowed raw points around a point, rounded up and down in the first discrete axes."""
        discrete = [i for i, axis in enumerate(self.axes) if axis.grid is not None or axis.span.step]
        near = [
            axis.around(float(t[i])) if i in discrete[:_ROUNDED_AXES] else axis.raw(t[i : i + 1]).tolist()
            for i, axis in enumerate(self.axes)
        ]
        return np.array(list(itertools.product(*near)), np.float64)


def coordinates(space: SearchSpace, raw: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    """Raw hyperparameters in the coordinates of a search space, also outside of its ranges.

    Raises:
      InvalidInputError: a parameter's scaling is not defined at a value, such as the logarithm at 0.

    >>> space = SearchSpace((Parameter("learning_rate", 1e-4, 1.0, "log"),))
    >>> coordinates(space, np.array([[1e-6]])).round(3).tolist()
    [[-0.5]]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = [each.to_unit(raw[:, i]) for i, each in enumerate(space.parameters)]
    unit = np.stack(columns, axis=1)
    if not np.isfinite(unit).all():
        row, column = np.argwhere(~np.isfinite(unit))[0]
        parameter = space.parameters[column]
        raise InvalidInputError(
            f"{parameter.scaling} scaling is not defined at {parameter.name} = {raw[row, column]}",
            fix=_DEFINED[parameter.scaling],
        )
    return unit


def _axis(parameter: Parameter, given: Range | Choices | float) -> _Axis:
    if isinstance(given, Choices):
        grid = np.unique(np.array(given.values, np.float64))
        if not len(grid):
            raise InvalidInputError("no value to choose from", where=f"parameter {parameter.name!r}")
        span = Range(float(grid[0]), float(grid[-1]))
    else:
        grid, span = None, given if isinstance(given, Range) else Range(given, given)
    if span.lower > span.upper or (span.step is not None and not span.step > 0.0):
        raise InvalidInputError(
            f"{span} is empty",
            where=f"parameter {parameter.name!r}",
            fix="give lower <= upper, and a positive step",
        )
    ends = np.array([[span.lower], [span.upper]])
    start, end = coordinates(SearchSpace((parameter,)), ends)[:, 0].tolist()
    return _Axis(parameter, start, end - start, grid if end > start else None, span)
