"""Search spaces: named hyperparameters with declared ranges or levels; raw values <-> unit cube.

A point of a space has three forms. Its *values* are what a person writes: 0.1, 64, "relu", true. Its *codes*
are float64, one for each parameter: the number itself, the index of the level, NaN where the parameter is
inactive. Its *coordinates* `x` are what models see: columns in [0, 1], of which some parameters have several
(`Parameter.columns`, `Choice.columns`). A conditional parameter has one more column, 1 where it is active and
0 where it is not; its other columns then hold their centre, as if nothing were known of it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Condition, Parameter, Value
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
        return tuple(name for each in self.parameters for name in _columns(each))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The columns of `x` of each parameter, the one that says whether it is active among them."""
        ends = np.cumsum([0, *(len(_columns(each)) for each in self.parameters)]).tolist()
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
        """The places of all parameters, each after its parent."""
        order: list[int] = []
        while len(order) < len(self.parameters):
            ready = [
                place
                for place, parent in enumerate(self._parents)
                if place not in order and (parent == place or parent in order)
            ]
            if not ready:
                circle = [name for place, name in enumerate(self.names) if place not in order]
                raise InvalidInputError(
                    f"the conditions of {', '.join(circle)} go round in a circle",
                    where="search space",
                    fix="let one of them be active always",
                )
            order += ready
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
                codes[row, place] = self._code(values, place, codes[row])
            unknown = values.keys() - set(self.names)
            if unknown:
                raise InvalidInputError(
                    f"unknown hyperparameters: {', '.join(sorted(unknown))}",
                    fix=f"the parameters are {', '.join(self.names)}",
                )
        return codes

    def _code(self, values: Mapping[str, Value], place: int, known: Float64[np.ndarray, " p"]) -> float:
        """The code of one value, given the codes of the parameters before; NaN where it is inactive."""
        each = self.parameters[place]
        if each.condition is not None:
            parent = self._parents[place]
            at = known[parent : parent + 1]
            if np.isnan(at[0]) or not self.parameters[parent].meets(each.condition, at)[0]:
                return np.nan
        value = values.get(each.name)
        if value is None:
            active = f", although it is active: {each.condition}" if each.condition else ""
            raise InvalidInputError(f"{each.name} has no value{active}")
        return each.code(value)

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
            if parameter.condition is None:
                columns.append(parameter.encode(code))
            elif _columns(parameter):
                known = np.where(lit[:, None], parameter.encode(code), parameter.centre)
                columns += [known, lit[:, None].astype(np.float64)]
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
        return [_parameter_json(each) for each in self.parameters]

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


def parameter_of(
    name: str,
    type: str = "real",
    *,
    condition: Mapping[str, Any] | None = None,
    role: str = "",
    **fields: Any,
) -> Parameter | Choice:
    """A parameter of plain values, as JSON and TOML hold them.

    Args:
      name: of the hyperparameter.
      type: `real` or `integer`, with the fields lower, upper and scaling; `choice` or `ordinal`, with levels;
        `boolean`; or `constant`, with value.
      condition: the fields of `Condition`; None: none.
      role: as in `Parameter`.
      fields: those of the type.

    Raises:
      InvalidInputError: the type or a field is unknown, a field is missing, or a value cannot be used.

    >>> parameter_of("batch_size", "ordinal", levels=[32, 64, 128])
    Choice(name='batch_size', levels=(32, 64, 128), ordered=True)
    """
    where = f"parameter {name!r}"
    if type not in _FIELDS:
        raise InvalidInputError(f"unknown type {type!r}", where=where, fix=f"use {', '.join(_FIELDS)}")
    required, optional = _FIELDS[type]
    missing = [each for each in required if each not in fields]
    unknown = [each for each in fields if each not in (*required, *optional)]
    if missing or unknown:
        problem = f"{missing[0]} is missing" if missing else f"{unknown[0]} is no field"
        known = ", ".join((*required, *optional)) or "no others"
        raise InvalidInputError(f"{problem} of type {type!r}", where=where, fix=f"its fields are {known}")
    for each, value in {"name": name, "role": role, **fields}.items():
        if not _fits(each, value):
            raise InvalidInputError(f"{each} is {value!r:.60}", where=where, fix=f"give {_KINDS[each]}")
    common: dict[str, Any] = {"condition": _condition_of(condition, where), "role": role}
    if type in ("real", "integer"):
        return Parameter(name, integer=type == "integer", **fields, **common)
    if type == "boolean":
        return Choice(name, (False, True), **common)
    levels = (fields["value"],) if type == "constant" else tuple(fields["levels"])
    return Choice(name, levels, type == "ordinal", **common)


_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "real": (("lower", "upper"), ("scaling",)),
    "integer": (("lower", "upper"), ("scaling",)),
    "choice": (("levels",), ()),
    "ordinal": (("levels",), ()),
    "boolean": ((), ()),
    "constant": (("value",), ()),
}


_KINDS = {
    **dict.fromkeys(("name", "role", "scaling"), "a text"),
    **dict.fromkeys(("lower", "upper"), "a finite number"),
    "levels": "a list of texts or numbers",
    "value": "a text, a number, true or false",
}


def _fits(field: str, value: Any) -> bool:
    """Whether a plain value is of the type of a field."""
    if field in ("lower", "upper"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max
    if field == "levels":
        return isinstance(value, list | tuple) and all(_fits("value", level) for level in value)
    return isinstance(value, bool | int | float | str if field == "value" else str)


def _condition_of(fields: Mapping[str, Any] | None, where: str) -> Condition | None:
    if fields is None:
        return None
    kinds = {"parameter": "name", "values": "levels", "lower": "lower", "upper": "upper"}
    if not isinstance(fields, Mapping) or any(
        each not in kinds or not (value is None or _fits(kinds[each], value))
        for each, value in fields.items()
    ):
        raise InvalidInputError(
            f"the condition is {fields!r:.100}",
            where=where,
            fix='write { parameter = "...", values = [...] }, or numbers as lower and upper',
        )
    given = {**fields, "values": tuple(fields.get("values") or ())}
    if "parameter" not in given:
        raise InvalidInputError(
            "the condition names no parameter", where=where, fix='write parameter = "..."'
        )
    try:
        return Condition(**given)
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=where, fix=error.fix) from error


def _parameter_json(each: Parameter | Choice) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": each.name}
    if isinstance(each, Parameter):
        fields |= {"lower": each.lower, "upper": each.upper, "scaling": each.scaling}
    elif each.type == "constant":
        fields["value"] = each.levels[0]
    elif each.type != "boolean":
        fields["levels"] = list(each.levels)
    # Spaces of reals are written as before there were other types.
    if each.type != "real":
        fields["type"] = each.type
    if each.condition is not None:
        given = asdict(each.condition) | {"values": list(each.condition.values)}
        fields["condition"] = {key: value for key, value in given.items() if value not in (None, [])}
    return fields | ({"role": each.role} if each.role else {})


def _columns(parameter: Parameter | Choice) -> tuple[str, ...]:
    """Names of the columns of `x`, that of its activity included."""
    if parameter.condition is None:
        return parameter.columns
    return (*parameter.columns, f"{parameter.name}:active") if parameter.columns else ()


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
