"""Search spaces: named hyperparameters with declared ranges or levels; raw values <-> unit cube.

A point of a space has three forms. Its *values* are what a person writes: 0.1, 64, "relu", true. Its *codes*
are float64, one for each parameter: the number itself, the index of the level, NaN where the parameter is
inactive. Its *coordinates* `x` are what models see: columns in [0, 1], of which some parameters have several
(`Parameter.columns`, `Choice.columns`). A conditional parameter has one more column, 1 where it is active and
0 where it is not; its other columns then hold their centre, as if nothing were known of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.activity import column_names, with_activity
from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Value
from hyperbo.data.parameter_json import parameter_json, parameter_of
from hyperbo.errors import InvalidInputError


@dataclass(frozen=True)
class SearchSpace:
    """An ordered set of parameters; inputs `x` are points of a unit cube, by the declared bounds and levels.

    Raises:
      InvalidInputError: there is no parameter that varies, names repeat, or a condition names no parameter,
        no value of its parent, or in a circle.

    >>> space = SearchSpace((Parameter("depth", 1, 5, integer=True), Choice("warmup", (False, True))))
    >>> x = space.to_unit(space.codes([{"depth": 2, "warmup": True}]))
    >>> x.tolist(), space.values(space.from_unit(x))
    ([[0.25, 1.0]], [{'depth': 2, 'warmup': True}])
    """

    parameters: tuple[Parameter | Choice, ...]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise InvalidInputError("a search space needs at least one parameter")
        if len(set(self.names)) != len(self.names):
            raise InvalidInputError(f"parameter names repeat: {', '.join(self.names)}")
        if not self.columns:
            raise InvalidInputError("all parameters are constants", fix="declare one that varies")
        if len(set(self.columns)) != len(self.columns):
            raise InvalidInputError(f"names of columns repeat: {', '.join(self.columns)}")
        for place in self.parents_first:
            parameter, parent = self.parameters[place], self._parents[place]
            if parameter.condition is not None:
                try:
                    self.parameters[parent].meets(parameter.condition, np.zeros(1))
                except InvalidInputError as error:
                    where = f"parameter {parameter.name!r}: condition"
                    raise InvalidInputError(error.what, where=where, fix=error.fix) from error

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of codes."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of `x`."""
        return tuple(name for each in self.parameters for name in column_names(each))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The columns of `x` of each parameter, the one that says whether it is active among them."""
        ends = np.cumsum([0, *(len(column_names(each)) for each in self.parameters)]).tolist()
        return tuple(map(slice, ends[:-1], ends[1:]))

    @property
    def dimension(self) -> int:
        """Number of columns of `x`."""
        return len(self.columns)

    @cached_property
    def is_real(self) -> bool:
        """Whether all parameters are reals that are always active: codes are values, one for a column."""
        return all(type(each) is Parameter and _is_real(each) for each in self.parameters)

    def parameter(self, name: str) -> Parameter | Choice:
        """The parameter of that name.

        Raises:
          InvalidInputError: there is none.
        """
        if name not in self.names:
            raise InvalidInputError(
                f"no parameter {name!r}", fix=f"the parameters are {', '.join(self.names)}"
            )
        return self.parameters[self.names.index(name)]

    @cached_property
    def _parents(self) -> tuple[int, ...]:
        """The place of each parameter's parent; its own place where it has no condition."""
        parents = []
        for place, each in enumerate(self.parameters):
            name = each.condition.parameter if each.condition else each.name
            if name not in self.names:
                raise InvalidInputError(
                    f"there is no parameter {name!r}",
                    where=f"parameter {each.name!r}: condition",
                    fix=f"name one of {', '.join(self.names)}",
                )
            parents.append(self.names.index(name))
            if each.condition and parents[-1] == place:
                raise InvalidInputError(
                    "a parameter is its own parent", where=f"parameter {each.name!r}: condition"
                )
        return tuple(parents)

    @cached_property
    def parents_first(self) -> tuple[int, ...]:
        """The places of all parameters in their order, but each after its parent."""
        order: list[int] = []
        for place in range(len(self.parameters)):
            chain: list[int] = []
            while place not in order and place not in chain:
                chain.append(place)
                place = self._parents[place]
            if place in chain and self._parents[place] != place:
                circle = [self.names[each] for each in sorted(chain[chain.index(place) :])]
                raise InvalidInputError(
                    f"the conditions of {', '.join(circle)} go round in a circle",
                    where="search space",
                    fix="let one of them be active always",
                )
            order += reversed(chain)
        return tuple(order)

    def active(self, codes: Float64[np.ndarray, "n p"]) -> Bool[np.ndarray, "n p"]:
        """Which parameters are active at points, by the codes of their parents."""
        active = np.ones(codes.shape, bool)
        for place in self.parents_first:
            condition, parent = self.parameters[place].condition, self._parents[place]
            if condition is not None:
                met = self.parameters[parent].meets(condition, codes[:, parent])
                active[:, place] = active[:, parent] & met
        return active

    def is_active(self, name: str, values: Mapping[str, Value]) -> bool:
        """Whether a parameter is active, given values of others; it is not where its parent has none.

        Numbers may lie outside of their ranges.
        """
        place = self.names.index(name)
        condition, parent = self.parameters[place].condition, self.parameters[self._parents[place]]
        if condition is None:
            return True
        if parent.name not in values or not self.is_active(parent.name, values):
            return False
        value = values[parent.name]
        code = parent.code(value) if isinstance(parent, Choice) else float(value)
        return bool(parent.meets(condition, np.array([code]))[0])

    def codes(self, points: Sequence[Mapping[str, Value]]) -> Float64[np.ndarray, "n p"]:
        """The codes of points given by their values; a value of an inactive parameter does not count.

        Raises:
          InvalidInputError: an active parameter has no value, a value is none of its parameter, or a name is
            no parameter.
        """
        codes = np.full((len(points), len(self.parameters)), np.nan)
        for row, values in enumerate(points):
            for place in self.parents_first:
                codes[row, place] = self._code(values, self.parameters[place])
            unknown = values.keys() - set(self.names)
            if unknown:
                raise InvalidInputError(
                    f"unknown hyperparameters: {', '.join(sorted(unknown))}",
                    fix=f"the parameters are {', '.join(self.names)}",
                )
        return codes

    def _code(self, values: Mapping[str, Value], parameter: Parameter | Choice) -> float:
        """The code of one value; NaN where the parameter is inactive."""
        if not self.is_active(parameter.name, values):
            return np.nan
        value = values.get(parameter.name)
        if value is None:
            condition = parameter.condition
            active = f", although it is active: {condition}" if condition else ""
            raise InvalidInputError(f"{parameter.name} has no value{active}")
        return parameter.code(value)

    def values(self, codes: Float64[np.ndarray, "n p"]) -> list[dict[str, Value]]:
        """The values of the active parameters at points."""
        active = self.active(codes)
        return [
            {
                each.name: each.value(code)
                for each, code, is_active in zip(self.parameters, row, lit, strict=True)
                if is_active
            }
            for row, lit in zip(codes.tolist(), active, strict=True)
        ]

    def to_unit(self, codes: Float64[np.ndarray, "n p"]) -> Float64[np.ndarray, "n d"]:
        """Map codes, one row per point, to the unit cube; roundings outside are clipped.

        Raises:
          InvalidInputError: a number lies outside its declared range by more than a rounding
            (`Parameter.accepts`), is not whole where it has to be, or not finite; a code is no level; or the
            columns are not the parameters.
        """
        codes = np.asarray(codes, np.float64)
        if codes.shape[1] != len(self.parameters):
            raise InvalidInputError(
                f"points have {codes.shape[1]} columns, the search space has {len(self.names)} parameters",
                fix=f"give one column for each of {', '.join(self.names)}",
            )
        active = self.active(codes)
        columns = []
        for place, parameter in enumerate(self.parameters):
            code, lit = codes[:, place], active[:, place]
            refused = lit & ~parameter.accepts(code)
            if refused.any():
                row = int(np.argmax(refused))
                raise InvalidInputError(
                    _refusal(parameter, float(code[row])),
                    where=f"row {row}",
                    fix="correct the value or declare a wider search space",
                )
            columns.append(with_activity(parameter, parameter.encode(code), lit))
        return np.concatenate(columns, axis=1)

    def outside(self, codes: Float64[np.ndarray, "n p"]) -> Bool[np.ndarray, " n"]:
        """Which points have a raw value outside of its declared range, a rounding or more."""
        columns = [each.outside(codes[:, place]) for place, each in enumerate(self.parameters)]
        return np.any(np.stack(columns, axis=1) & self.active(codes), axis=1)

    def from_unit(self, unit: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n p"]:
        """Map points of the unit cube, one per row, to the codes of the points of the space next to them.

        Integers are rounded, of the columns of levels the largest counts, and what is then inactive is NaN.

        Raises:
          InvalidInputError: a value lies outside [0, 1], or the columns are not those of the space.
        """
        if unit.shape[1] != self.dimension:
            raise InvalidInputError(
                f"points have {unit.shape[1]} columns, the search space has {self.dimension} columns",
                fix=f"give one for each of {', '.join(self.columns)}",
            )
        if not ((unit >= 0.0) & (unit <= 1.0)).all():
            raise InvalidInputError("a point lies outside the unit cube", fix="give values in [0, 1]")
        columns = [
            each.decode(unit[:, own][:, : len(each.columns)])
            for each, own in zip(self.parameters, self.slices, strict=True)
        ]
        codes = np.stack(columns, axis=1)
        return codes if self.is_real else np.where(self.active(codes), codes, np.nan)

    def input_id(self, hyperparameters: Mapping[str, Value]) -> str:
        """Identify a raw input: equal for two trials exactly when all raw values are equal.

        Numbers count with their 64 bits, texts with their letters, and a parameter without a value as NaN.
        """
        content = b"".join(_bytes(hyperparameters.get(name)) for name in self.names)
        return hashlib.sha256(content).hexdigest()[:16]

    def to_json(self) -> list[dict[str, Any]]:
        """The parameters as plain JSON values."""
        return [parameter_json(each) for each in self.parameters]

    @classmethod
    def from_json(cls, parameters: list[dict[str, Any]]) -> SearchSpace:
        """Read what `to_json` wrote.

        Raises:
          InvalidInputError: a field is missing, unknown or out of its domain.
        """
        if not isinstance(parameters, list):
            raise InvalidInputError(f"a search space is a list of parameters, not {parameters!r:.60}")
        try:
            return cls(tuple(parameter_of(**fields) for fields in parameters))
        except TypeError as error:
            raise InvalidInputError(f"search space cannot be read: {error}") from error


def _is_real(parameter: Parameter) -> bool:
    return not parameter.integer and parameter.condition is None


def _refusal(parameter: Parameter | Choice, code: float) -> str:
    if isinstance(parameter, Choice):
        return f"{parameter.name} has the code {code}, which is none of its {len(parameter.levels)} levels"
    is_broken = parameter.integer and not parameter.outside(np.array([code]))[0]
    problem = "not a whole number" if is_broken else f"outside [{parameter.lower}, {parameter.upper}]"
    return f"{parameter.name} = {code} is {problem}"


def _bytes(value: Value | None) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-8")
        return len(text).to_bytes(8, "little") + text
    # Adding 0.0 makes the two zeros one: they are equal, but their bytes are not.
    return (np.array([np.nan if value is None else value], "<f8") + 0.0).tobytes()


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
