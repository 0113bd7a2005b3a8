"""Parameters that are numbers, real or integer, and the conditions under which a parameter is active.

Notation: v is a raw value, s the scaling, [l, u] the declared range. The coordinate of v is

    t(v) = (s(v) - s(l)) / (s(u) - s(l)),   s(v) = v, ln v or -ln(1 - v).

An integer has the coordinate of its value. A coordinate between two integers stands for the one that is
nearer in raw units: a kernel sees t(round(v)), never a point between (Garrido-Merchan and Hernandez-Lobato,
"Dealing with categorical and integer-valued variables in Bayesian optimization with Gaussian processes",
2020).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.errors import InvalidInputError

Scaling = Literal["linear", "log", "log1m"]
# The value of a hyperparameter: a number, a text, or true or false.
Value = float | int | str | bool
# A value outside of its range by this share of the scaled width is a rounding.
ROUNDING = 1e-6
# Above it, not every integer is a float64.
LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Condition:
    """When a parameter is active: where its parent is, and has one of the values or lies in the range.

    Attributes:
      parameter: name of the parent.
      values: of the parent; empty where a range is given.
      lower: smallest value of a parent that is a number; None: no bound.
      upper: largest value of a parent that is a number; None: no bound.

    Raises:
      InvalidInputError: there are neither values nor bounds, or both.

    >>> Condition("optimizer", ("sgd", "momentum")), Condition("depth", lower=2)
    (Condition(optimizer is 'sgd' or 'momentum'), Condition(2 <= depth))
    """

    parameter: str
    values: tuple[Value, ...] = ()
    lower: float | int | None = None
    upper: float | int | None = None

    def __post_init__(self) -> None:
        if bool(self.values) == (self.lower is not None or self.upper is not None):
            raise InvalidInputError(
                f"the condition on {self.parameter!r} needs either values or bounds",
                fix='write values = ["..."], or lower = ... or upper = ...',
            )
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        if not all(isinstance(bound, int | float) and abs(bound) < float("inf") for bound in bounds):
            raise InvalidInputError(
                f"the condition on {self.parameter!r} has the bounds {bounds}", fix="give finite numbers"
            )
        if bounds != sorted(bounds):
            raise InvalidInputError(f"the condition {self} is never met", fix="give lower <= upper")

    def __repr__(self) -> str:
        """The condition as a formula."""
        return f"Condition({self})"

    def __str__(self) -> str:
        """The condition as a formula, without its class."""
        if self.values:
            return f"{self.parameter} is {' or '.join(map(repr, self.values))}"
        lower = "" if self.lower is None else f"{self.lower:g} <= "
        return f"{lower}{self.parameter}" + ("" if self.upper is None else f" <= {self.upper:g}")

    def in_bounds(self, raw: Float64[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
        """Whether values of the parent lie between the bounds."""
        above = True if self.lower is None else raw >= self.lower
        return above & (True if self.upper is None else raw <= self.upper) & ~np.isnan(raw)


def short_repr(settings: Any) -> str:
    """A dataclass with those of its fields that differ from their defaults."""
    named = {each.name: getattr(settings, each.name) for each in fields(settings)}
    changed = (
        f"{each.name}={named[each.name]!r}" for each in fields(settings) if named[each.name] != each.default
    )
    return f"{type(settings).__name__}({', '.join(changed)})"


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter that is a number, its range in raw units and the scaling under which it is searched.

    Scalings: `linear` searches v, `log` searches ln(v), `log1m` searches -ln(1 - v): the scaling of a
    momentum near one. All three increase with v.

    Attributes:
      name: of the hyperparameter.
      lower: smallest value, in raw units.
      upper: largest value.
      scaling: `linear`, `log` or `log1m`.
      integer: whether only whole numbers are values.
      condition: when the parameter is active; None: always.
      role: what it is to training, such as `learning_rate`; empty: its name says it.

    Raises:
      InvalidInputError: the range is empty, not finite, or outside the domain of the scaling; or scaled it
        is, in float64, of no or of infinite width; or an integer has bounds that are no whole numbers.
    """

    name: str
    lower: float | int
    upper: float | int
    scaling: Scaling = "linear"
    integer: bool = False
    condition: Condition | None = None
    role: str = ""

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        return short_repr(self)

    def __post_init__(self) -> None:
        where = f"parameter {self.name!r}"
        if not self.name:
            raise InvalidInputError("a parameter has no name", fix="give one")
        if self.scaling not in ("linear", "log", "log1m"):
            raise InvalidInputError(
                f"unknown scaling {self.scaling!r}", where=where, fix="use linear, log or log1m"
            )
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower < self.upper):
            raise InvalidInputError(
                f"range [{self.lower}, {self.upper}] is empty or not finite",
                where=where,
                fix="give finite bounds with lower < upper",
            )
        if self.scaling == "log" and self.lower <= 0:
            raise InvalidInputError(
                f"log scaling needs a positive range, got lower={self.lower}", where=where
            )
        if self.scaling == "log1m" and self.upper >= 1:
            raise InvalidInputError(
                f"log1m scaling needs a range below 1, got upper={self.upper}", where=where
            )
        if self.integer and not all(
            float(bound).is_integer() and abs(bound) <= LARGEST_INTEGER for bound in (self.lower, self.upper)
        ):
            raise InvalidInputError(
                f"range [{self.lower}, {self.upper}] of an integer",
                where=where,
                fix="give whole numbers of at most 2^53",
            )
        with np.errstate(over="ignore"):
            width = self._scale(np.float64(self.upper)) - self._scale(np.float64(self.lower))
        if not 0 < width < np.inf:
            raise InvalidInputError(
                f"range [{self.lower}, {self.upper}] has the width {width} under {self.scaling} scaling",
                where=where,
                fix="give bounds that are closer together" if width else "give bounds that are further apart",
            )

    @property
    def type(self) -> str:
        """`real` or `integer`."""
        return "integer" if self.integer else "real"

    @property
    def summary(self) -> str:
        """Its values in words.

        >>> Parameter("width", 16, 512, "log", integer=True, condition=Condition("depth", lower=1)).summary
        '16 to 512, log, whole numbers; where 1 <= depth'
        """
        whole = ", whole numbers" if self.integer else ""
        where = f"; where {self.condition}" if self.condition else ""
        return f"{self.lower:g} to {self.upper:g}, {self.scaling}{whole}{where}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of its column of `x`."""
        return (self.name,)

    @property
    def centre(self) -> tuple[float, ...]:
        """What stands in its column where it is inactive."""
        return (0.5,)

    def _scale(self, value: Any) -> Any:
        if self.scaling == "log":
            return np.log(value)
        return -np.log1p(-value) if self.scaling == "log1m" else value

    def to_unit(self, raw: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """Map raw values to coordinates, those of the range to [0, 1]."""
        low, high = self._scale(np.float64(self.lower)), self._scale(np.float64(self.upper))
        return (self._scale(raw) - low) / (high - low)

    def outside(self, raw: Float64[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
        """Whether values lie outside of the range, a rounding or more; NaN does."""
        return ~((raw >= self.lower) & (raw <= self.upper))

    def accepts(self, raw: Float64[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
        """Whether values lie in the range, or, of reals, a rounding outside.

        A rounding is at most `ROUNDING` of the scaled width, or has the float32 of the bound: near a momentum
        of one, that of a float32 is more.

        >>> Parameter("power", 0.0, 2.0).accepts(np.array([1.0, 2.000001, 2.00001])).tolist()
        [True, True, False]
        >>> Parameter("depth", 1, 4, integer=True).accepts(np.array([1.0, 2.5, 5.0])).tolist()
        [True, False, False]
        """
        inside = ~self.outside(raw)
        if self.integer:
            return inside & (np.round(raw) == raw)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            unit, short = self.to_unit(raw), np.asarray(raw, np.float32)
            bounds = np.array([self.lower, self.upper], np.float32)
        near = (unit >= -ROUNDING) & (unit <= 1.0 + ROUNDING)
        # Where float32 has no such number, all are 0 or infinite to it.
        usable = bounds[np.isfinite(bounds) & (bounds != 0.0)]
        return inside | near | np.isin(short, usable)

    def raw_value(self, unit: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """Map coordinates to real values, those outside [0, 1] too: the inverse of `to_unit`."""
        low, high = self._scale(np.float64(self.lower)), self._scale(np.float64(self.upper))
        scaled = low + (high - low) * unit
        if self.scaling == "log":
            return np.exp(scaled)
        return -np.expm1(-scaled) if self.scaling == "log1m" else scaled

    def from_unit(self, unit: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """Map values in [0, 1] to the raw range, or its integers: the inverse of `to_unit` up to rounding.

        >>> Parameter("width", 16, 512, "log", integer=True).from_unit(np.array([0.6, 1.0])).tolist()
        [128.0, 512.0]
        """
        raw = self.raw_value(unit)
        # Rounding must not carry a bound out of the declared range.
        return np.clip(np.round(raw) if self.integer else raw, self.lower, self.upper)

    def encode(self, codes: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, "n 1"]:
        """Columns of `x` of raw values; those a rounding outside of the range are clipped."""
        return self.to_unit(np.clip(codes, self.lower, self.upper))[:, None]

    def decode(self, columns: Float64[np.ndarray, "n 1"]) -> Float64[np.ndarray, " n"]:
        """Raw values of columns of `x`."""
        return self.from_unit(columns[:, 0])

    def code(self, value: Value) -> float:
        """A value as a number.

        Raises:
          InvalidInputError: the value is not a number, not whole where the parameter is, or outside of the
            range by more than a rounding.
        """
        # A subclass of numpy's numbers is a number; bool is one to Python, but not here.
        if isinstance(value, bool | str) or not isinstance(value, int | float | np.number):
            raise InvalidInputError(f"{self.name} = {value!r} is not a number", fix="write a number")
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise InvalidInputError(f"{self.name} = {value!r:.60} is too large", fix="give at most 2^53")
        if self.integer and not float(value).is_integer():
            raise InvalidInputError(
                f"{self.name} = {value!r} is not a whole number",
                fix="correct it, or declare the parameter as real",
            )
        if not self.lower <= value <= self.upper and not self.accepts(np.array([value], np.float64)).all():
            raise InvalidInputError(
                f"{self.name} = {value!r} is outside [{self.lower}, {self.upper}]",
                fix="correct the value or declare a wider range",
            )
        return float(value)

    def value(self, code: float) -> Value:
        """A raw value in its type.

        >>> Parameter("width", 16, 512, "log", integer=True).value(128.0)
        128
        """
        return round(code) if self.integer else float(code)

    def meets(self, condition: Condition, codes: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Whether values fulfil a condition on this parameter.

        Raises:
          InvalidInputError: the condition names values of a real parameter, or one that is no value.
        """
        if not condition.values:
            return condition.in_bounds(codes)
        if not self.integer:
            raise InvalidInputError(
                f"the condition {condition} names values of a real parameter", fix="give lower or upper"
            )
        return np.isin(codes, [self.code(value) for value in condition.values])
