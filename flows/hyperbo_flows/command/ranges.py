"""The ranges, choices and fixed values that a user writes on the command line or in a TOML file."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from pydantic import StringConstraints

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import field_path, read_toml, validated
from hyperbo.tuning.optuna.whole_space import is_wide

_INTEGER, _LOG = "int", "log"


@dataclass(frozen=True)
class _Named:
    """The key that every table `[[parameters]]` has."""

    name: Annotated[str, StringConstraints(min_length=1)]


@dataclass(frozen=True)
class _Range(_Named):
    """A range, with the keys of a table `[[parameters]]`."""

    lower: float
    upper: float
    integer: bool = False
    scaling: Literal["linear", "log"] | None = None


@dataclass(frozen=True)
class _Choices(_Named):
    """Choices, with the keys of a table `[[parameters]]`."""

    choices: list[Any]


@dataclass(frozen=True)
class _Value(_Named):
    """A value that is held, with the keys of a table `[[parameters]]`."""

    value: Any


@dataclass(frozen=True)
class _RangesFile:
    parameters: tuple[dict[str, Any], ...]


def read_ranges(
    space: SearchSpace | None, file: Path | None, options: Sequence[str]
) -> dict[str, BaseDistribution]:
    """Read what is tuned from a file and from options.

    Args:
      space: of the prior; it has the scaling of the parameters that it knows. None: of the universal prior,
        which knows none: a range without a scaling is searched in its logarithm where it is wide, as by
        `Tuner`.
      file: a TOML file with tables `[[parameters]]`. Each has `name`, and `lower` and `upper` (optional:
        `integer`, `scaling`), or `choices`, or a fixed `value`.
      options: `name=1e-4:1e-1`, followed by `:int` or `:log` or both; `name=32,64,128`; `name=1.0`.

    Returns:
      A distribution of Optuna for each parameter.

    Raises:
      InvalidInputError: a file or an option cannot be read, or a parameter is named twice.
    """
    if file is not None and not file.exists():
        first = space.names[0] if space is not None else "learning_rate"
        example = f'parameters = [{{name = "{first}", lower = 0.001, upper = 0.1}}]'
        raise InvalidInputError(
            "there is no such file",
            where=str(file),
            fix=f"make one: echo '{example}' > {shlex.quote(str(file))}",
        )
    given: dict[str, BaseDistribution] = {}
    for where, name, said in [*_tables(file), *map(_option, options)]:
        if name in given:
            raise InvalidInputError(f"{name!r} is given twice", where=where, fix="give it once")
        given[name] = _distribution(space, name, said, where)
    return given


def _tables(file: Path | None) -> Iterator[tuple[str, str, Any]]:
    tables = read_toml(_RangesFile, file).parameters if file is not None else ()
    for number, table in enumerate(tables):
        at = ("parameters", number)
        kind = _Value if "value" in table else _Choices if "choices" in table else _Range
        said = validated(kind, table, str(file), at=at)
        what = said.value if isinstance(said, _Value) else said
        yield f"{file}: {field_path(*at)}, {said.name}", said.name, what


def _option(option: str) -> tuple[str, str, Any]:
    where = f"--parameter {option}"
    name, equals, text = option.partition("=")
    if not (name and equals and text):
        raise InvalidInputError("no value", where=where, fix="write NAME=LOWER:UPPER, or NAME=VALUE")
    if "," in text:
        return where, name, _Choices(name, [_value(each) for each in text.split(",")])
    if ":" not in text:
        return where, name, _value(text)
    lower, upper, *kinds = text.split(":")
    if not (set(kinds) <= {_INTEGER, _LOG} and len(set(kinds)) == len(kinds)):
        raise InvalidInputError(
            f"{':'.join(kinds)!r} is no kind of range", where=where, fix=f"write :{_INTEGER}, :{_LOG} or both"
        )
    bounds = _value(lower), _value(upper)
    if any(isinstance(each, str) for each in bounds):
        raise InvalidInputError("a bound is no number", where=where, fix="write NAME=LOWER:UPPER")
    scaling = "log" if _LOG in kinds else None
    return where, name, _Range(name, float(bounds[0]), float(bounds[1]), _INTEGER in kinds, scaling)


def _value(text: str) -> int | float | str:
    """A whole number where it is written as one, another number, or text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _distribution(space: SearchSpace | None, name: str, said: Any, where: str) -> BaseDistribution:
    known = space.parameter(name) if space is not None and name in space.names else None
    try:
        if isinstance(said, _Range):
            if space is None and said.scaling is None and is_wide(said.lower, said.upper):
                said = replace(said, scaling="log")
            return _of_range(known, said, where)
        if isinstance(said, _Choices):
            return CategoricalDistribution([_level(known, _checked(each, where)) for each in said.choices])
        value = _level(known, _checked(said, where))
        if isinstance(value, bool | str):
            return CategoricalDistribution([value])
        return IntDistribution(value, value) if isinstance(value, int) else FloatDistribution(value, value)
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(str(error), where=where) from error


def _level(known: Parameter | Choice | None, value: bool | int | float | str) -> bool | int | float | str:
    """A value in the type of the prior's levels: an option has no types of its own."""
    if isinstance(known, Choice) and known.is_text and isinstance(value, int | float):
        return next((level for level in known.levels if level == str(value)), value)
    if isinstance(known, Choice) and known.is_boolean and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    return value


def _of_range(known: Parameter | Choice | None, said: _Range, where: str) -> BaseDistribution:
    scaling = known.scaling if isinstance(known, Parameter) else None
    if said.scaling == "log" and scaling not in ("log", None):
        raise InvalidInputError(
            f"the prior searches {said.name} under {scaling} scaling", where=where, fix="leave log out"
        )
    _checked(said.lower, where)
    _checked(said.upper, where)
    log = said.scaling == "log" or scaling == "log"
    if not said.integer and not (isinstance(known, Parameter) and known.integer):
        return FloatDistribution(said.lower, said.upper, log=log)
    if not (said.lower.is_integer() and said.upper.is_integer()):
        raise InvalidInputError("a bound is no whole number", where=where)
    return IntDistribution(int(said.lower), int(said.upper), log=log)


def _checked(value: Any, where: str) -> bool | int | float | str:
    if not isinstance(value, bool | int | float | str):
        raise InvalidInputError(f"{value!r} is no value", where=where, fix="give a number or text")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{value} is not finite", where=where)
    return value
