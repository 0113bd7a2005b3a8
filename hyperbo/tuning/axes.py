"""The values that one parameter may take: a range or a set of numbers, or some levels of a choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Value
from hyperbo.errors import InvalidInputError

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
    """A set of values, in any order: numbers, or levels of a choice."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class NumberAxis:
    """The values that a number may take, in the unit interval of the prior.

    The width is 0 where the value is fixed. `grid` has all allowed values; it is None for a range. `span` is
    lower, upper and step in raw units.
    """

    parameter: Parameter
    start: float
    width: float
    grid: Float64[np.ndarray, " values"] | None
    span: Range

    @property
    def is_continuous(self) -> bool:
        """Whether nothing has to be rounded."""
        return self.grid is None and self.span.step is None

    @property
    def count(self) -> float | int:
        """The number of allowed values; infinity for a range of reals."""
        if self.width == 0.0:
            return 1
        if self.grid is not None:
            return len(self.grid)
        return math.inf if self.span.step is None else self._last + 1

    @property
    def _last(self) -> int:
        assert self.span.step is not None
        return math.floor((self.span.upper - self.span.lower) / self.span.step + 1e-9)

    def all(self) -> list[float]:
        """All allowed values, where they are finitely many."""
        if self.width == 0.0:
            return [self.span.lower]
        if self.grid is not None:
            return self.grid.tolist()
        assert self.span.step is not None
        return self._on_step(self.span.lower + self.span.step * np.arange(self.count)).tolist()

    def near(self, unit: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The allowed values nearest to coordinates of the prior."""
        if self.width == 0.0:
            return np.full(len(unit), self.span.lower)
        if self.grid is not None:
            coordinates = self.parameter.to_unit(self.grid)
            return self.grid[np.argmin(np.abs(coordinates - unit[:, None]), axis=1)]
        return self._on_step(self.parameter.raw_value(unit))

    def drawn(self, share: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The allowed values at shares of the width."""
        return self.near(self.start + self.width * share)

    def share(self, unit: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The inverse of `drawn`; 0 where the value is fixed."""
        return (unit - self.start) / (self.width or np.inf)

    def around(self, unit: float) -> list[float]:
        """The allowed values on both sides of a coordinate; one if continuous."""
        if self.width == 0.0 or self.is_continuous:
            return self.near(np.array([unit])).tolist()
        (raw,) = self.parameter.raw_value(np.array([unit]))
        if self.grid is not None:
            after = int(np.searchsorted(self.grid, raw))
            return self.grid[max(after - 1, 0) : after + 1].tolist()
        assert self.span.step is not None
        steps = (raw - self.span.lower) / self.span.step
        beside = self.span.lower + self.span.step * np.array([np.floor(steps), np.ceil(steps)])
        return np.unique(self._on_step(beside)).tolist()

    def _on_step(self, raw: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        lower, upper, step = self.span.lower, self.span.upper, self.span.step
        if step is not None:
            raw = lower + step * np.clip(np.round((raw - lower) / step), 0.0, self._last)
        return np.clip(raw, lower, upper)


@dataclass(frozen=True)
class LevelAxis:
    """The levels that a choice may take, as codes."""

    parameter: Choice
    allowed: Float64[np.ndarray, " levels"]

    @property
    def is_continuous(self) -> bool:
        """Whether there is but one level."""
        return len(self.allowed) == 1

    @property
    def count(self) -> int:
        """The number of allowed levels."""
        return len(self.allowed)

    def all(self) -> list[float]:
        """The allowed codes."""
        return self.allowed.tolist()

    def drawn(self, share: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The levels at shares of the unit interval, of which each has an equal part."""
        place = np.floor(share * len(self.allowed)).astype(np.int64)
        return self.allowed[np.clip(place, 0, len(self.allowed) - 1)]


def axis_of(parameter: Parameter | Choice, given: Range | Choices | Value | None) -> NumberAxis | LevelAxis:
    """The values of a parameter that a range, choices or a fixed value allow; None: all of its own.

    Raises:
      InvalidInputError: they are empty or of another type, a value is no level, or the scaling is not defined
        at one.
    """
    where = f"parameter {parameter.name!r}"
    if isinstance(given, Choices) and not given.values:
        raise InvalidInputError("no value to choose from", where=where)
    if isinstance(parameter, Choice):
        if isinstance(given, Range):
            raise InvalidInputError(
                f"a range of the choice {parameter.summary}", where=where, fix="give levels"
            )
        levels = (
            parameter.levels if given is None else given.values if isinstance(given, Choices) else (given,)
        )
        return LevelAxis(parameter, np.array([parameter.code(level) for level in levels]))
    if given is None:
        given = Range(float(parameter.lower), float(parameter.upper))
    if isinstance(given, Choices):
        grid = np.unique([_number(value, where) for value in given.values])
        if parameter.integer and not np.array_equal(grid, np.round(grid)):
            raise InvalidInputError(
                f"{list(given.values)} of an integer", where=where, fix="give whole numbers"
            )
        span = Range(float(grid[0]), float(grid[-1]))
    else:
        grid, span = None, given if isinstance(given, Range) else Range(*[_number(given, where)] * 2)
    if parameter.integer and grid is None and span.step is None and span.lower < span.upper:
        span = Range(float(math.ceil(span.lower)), float(math.floor(span.upper)), 1.0)
    if span.lower > span.upper or (span.step is not None and not span.step > 0.0):
        raise InvalidInputError(
            f"{span} is empty", where=where, fix="give lower <= upper, and a positive step"
        )
    start, end = defined_unit(parameter, np.array([span.lower, span.upper], np.float64)).tolist()
    return NumberAxis(parameter, start, end - start, grid if end > start else None, span)


def defined_unit(parameter: Parameter, raw: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Raw values as coordinates, also outside of the range.

    Raises:
      InvalidInputError: the scaling is not defined at a value, such as the logarithm at 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = parameter.to_unit(raw)
    if not np.isfinite(unit).all():
        value = raw[np.argmin(np.isfinite(unit))]
        raise InvalidInputError(
            f"{parameter.scaling} scaling is not defined at {parameter.name} = {value}",
            fix=_DEFINED[parameter.scaling],
        )
    return unit


def _number(value: Value, where: str) -> float:
    if isinstance(value, str | bool):
        raise InvalidInputError(f"{value!r} is not a number", where=where, fix="give numbers")
    return float(value)
