"""Search spaces: named hyperparameters with declared ranges and scalings; raw values <-> unit cube."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.errors import InvalidInputError

Scaling = Literal["linear", "log", "log1m"]
# A value outside of its range by this share of the scaled width is a rounding.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter, its declared range in raw units and the scaling under which it is searched.

    Scalings: `linear` searches x, `log` searches ln(x), `log1m` searches -ln(1 - x): the scaling of a
    momentum near one. All three increase with x.

    Raises:
      InvalidInputError: the range is empty, not finite, or outside the domain of the scaling; or scaled it
        is, in float64, of no or of infinite width.
    """

    name: str
    lower: float
    upper: float
    scaling: Scaling = "linear"

    def __post_init__(self) -> None:
        where = f"parameter {self.name!r}"
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
        with np.errstate(over="ignore"):
            width = self._scale(np.float64(self.upper)) - self._scale(np.float64(self.lower))
        if not 0 < width < np.inf:
            raise InvalidInputError(
                f"range [{self.lower}, {self.upper}] has the width {width} under {self.scaling} scaling",
                where=where,
                fix="give bounds that are closer together" if width else "give bounds that are further apart",
            )

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
        """Whether values lie in the range, or a rounding outside.

        A rounding is at most `ROUNDING` of the scaled width, or has the float32 of the bound: near a momentum
        of one, that of a float32 is more.

        >>> Parameter("power", 0.0, 2.0).accepts(np.array([1.0, 2.000001, 2.00001])).tolist()
        [True, True, False]
        """
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            unit, short = self.to_unit(raw), np.asarray(raw, np.float32)
            bounds = np.array([self.lower, self.upper], np.float32)
        near = (unit >= -ROUNDING) & (unit <= 1.0 + ROUNDING)
        # Where float32 has no such number, all are 0 or infinite to it.
        usable = bounds[np.isfinite(bounds) & (bounds != 0.0)]
        return ~self.outside(raw) | near | np.isin(short, usable)

    def raw_value(self, unit: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """Map coordinates to raw values, those outside [0, 1] too: the inverse of `to_unit`."""
        low, high = self._scale(np.float64(self.lower)), self._scale(np.float64(self.upper))
        scaled = low + (high - low) * unit
        if self.scaling == "log":
            return np.exp(scaled)
        return -np.expm1(-scaled) if self.scaling == "log1m" else scaled

    def from_unit(self, unit: Float64[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
        """Map values in [0, 1] to the raw range; the exact inverse of `to_unit` up to rounding."""
        # Rounding must not carry a bound out of the declared range.
        return np.clip(self.raw_value(unit), self.lower, self.upper)


@dataclass(frozen=True)
class SearchSpace:
    """An ordered set of parameters; inputs `x` are points of its unit cube, by the declared bounds.

    >>> space = SearchSpace((Parameter("learning_rate", 1e-5, 10.0, "log"),))
    >>> round(float(space.to_unit(np.array([[0.01]]))[0, 0]), 12)
    0.5
    """

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise InvalidInputError("a search space needs at least one parameter")
        if len(set(self.names)) != len(self.names):
            raise InvalidInputError(f"parameter names repeat: {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of `x`."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    def to_unit(self, raw: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
        """Map raw hyperparameters, one row per point, to the unit cube; roundings outside are clipped.

        Raises:
          InvalidInputError: a value lies outside its declared range by more than a rounding
            (`Parameter.accepts`) or is not finite, or the columns are not the parameters.
        """
        raw = np.asarray(raw, np.float64)
        self._check_columns(raw)
        for column, parameter in enumerate(self.parameters):
            values = raw[:, column]
            refused = ~parameter.accepts(values)
            if refused.any():
                row = int(np.argmax(refused))
                raise InvalidInputError(
                    f"{parameter.name} = {values[row]} is outside [{parameter.lower}, {parameter.upper}]",
                    where=f"row {row}",
                    fix="correct the value or declare a wider search space",
                )
        columns = [p.to_unit(np.clip(raw[:, i], p.lower, p.upper)) for i, p in enumerate(self.parameters)]
        return np.stack(columns, axis=1)

    def outside(self, raw: Float64[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which points have a raw value outside of its declared range, a rounding or more."""
        columns = [each.outside(raw[:, column]) for column, each in enumerate(self.parameters)]
        return np.any(columns, axis=0)

    def from_unit(self, unit: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
        """Map points of the unit cube, one per row, to raw hyperparameters.

        Raises:
          InvalidInputError: a value lies outside [0, 1], or the columns are not the parameters.
        """
        self._check_columns(unit)
        if not ((unit >= 0.0) & (unit <= 1.0)).all():
            raise InvalidInputError("a point lies outside the unit cube", fix="give values in [0, 1]")
        return np.stack([p.from_unit(unit[:, i]) for i, p in enumerate(self.parameters)], axis=1)

    def _check_columns(self, points: Float64[np.ndarray, "n columns"]) -> None:
        if points.shape[1] != self.dimension:
            raise InvalidInputError(
                f"points have {points.shape[1]} columns, the search space has {self.dimension} parameters",
                fix=f"give one column for each of {', '.join(self.names)}",
            )

    def input_id(self, hyperparameters: Mapping[str, float]) -> str:
        """Identify a raw input: equal for two trials exactly when all raw float64 values are equal."""
        # Adding 0.0 makes the two zeros one: they are equal, but their bytes are not.
        values = np.array([hyperparameters[name] for name in self.names], "<f8") + 0.0
        return hashlib.sha256(values.tobytes()).hexdigest()[:16]

    def to_json(self) -> list[dict[str, Any]]:
        """The parameters as plain JSON values."""
        return [vars(parameter).copy() for parameter in self.parameters]

    @classmethod
    def from_json(cls, parameters: list[dict[str, Any]]) -> SearchSpace:
        """Read what `to_json` wrote.

        Raises:
          InvalidInputError: a field is missing, unknown or out of its domain.
        """
        try:
            return cls(tuple(Parameter(**fields) for fields in parameters))
        except TypeError as error:
            raise InvalidInputError(f"search space cannot be read: {error}") from error


# Nesterov momentum with polynomial learning-rate decay: Table 4 "PD1 search space", section 7.1 "PD1". The
# momentum beta is what trials record; the paper's range of 1 - beta, [1e-3, 1], is beta in [0, 0.999].
PD1_SEARCH_SPACE = SearchSpace(
    (
        Parameter("learning_rate", 1e-5, 10.0, "log"),
        Parameter("power", 0.1, 2.0, "linear"),
        Parameter("momentum", 0.0, 0.999, "log1m"),
        Parameter("decay_steps_factor", 0.01, 0.99, "linear"),
    )
)
