"""What is tuned, as written on the command line or in a TOML file: ranges, choices, values that are held."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from flows.experiment_file import read_tables
from flows.fill import fill
from hyperbo.errors import InvalidInputError
from hyperbo.search_space import SearchSpace

_INTEGER, _LOG = "int", "log"


@dataclass(frozen=True)
class _Range:
    """A range, as a table `[[parameters]]` says it."""

    lower: float
    upper: float
    integer: bool = False
    scaling: Literal["linear", "log"] = "linear"


@dataclass(frozen=True)
class _Choices:
    """Some values."""

    values: list[Any]


def read_ranges(space: SearchSpace, file: Path | None, options: Sequence[str]) -> dict[str, BaseDistribution]:
    """What a file and options say of parameters.

    Args:
      space: of the prior, which scales the parameters that it knows.
      file: with tables `[[parameters]]`: `name`, and `lower` and `upper`, with `integer` and `scaling` where
        wanted; or `choices`; or `value`, which is held.
      options: `name=1e-4:1e-1`, with `:int` or `:log` or both behind it; `name=32,64,128`; `name=1.0`.

    Raises:
      InvalidInputError: a file or an option cannot be read, or a parameter is named twice.
    """
    given: dict[str, BaseDistribution] = {}
    for where, name, said in [*_tables(file), *map(_option, options)]:
        if name in given:
            raise InvalidInputError(f"{name!r} is given twice", where=where, fix="give it once")
        given[name] = _distribution(space, name, said, where)
    return given


def _tables(file: Path | None) -> list[tuple[str, str, Any]]:
    if file is None:
        return []
    tables = read_tables(file, ("parameters",)).get("parameters")
    if not isinstance(tables, list) or not all(isinstance(each, Mapping) for each in tables):
        raise InvalidInputError("no table 'parameters'", where=str(file), fix="write [[parameters]]")
    return [_table(dict(each), f"{file}, parameters {number}") for number, each in enumerate(tables, start=1)]


def _table(table: dict[str, Any], where: str) -> tuple[str, str, Any]:
    name = table.pop("name", None)
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"name is {name!r}", where=where, fix="give the parameter's name")
    where = f"{where}, {name}"
    if table.keys() == {"value"}:
        return where, name, table["value"]
    if table.keys() == {"choices"}:
        if not isinstance(table["choices"], list):
            raise InvalidInputError(f"choices are {table['choices']!r}", where=where, fix="give a list")
        return where, name, _Choices(table["choices"])
    return where, name, fill(_Range, table, where)


def _option(option: str) -> tuple[str, str, Any]:
    where = f"--parameter {option}"
    name, equals, text = option.partition("=")
    if not (name and equals and text):
        raise InvalidInputError("no value", where=where, fix="write NAME=LOWER:UPPER, or NAME=VALUE")
    if "," in text:
        return where, name, _Choices([_value(each) for each in text.split(",")])
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
    scaling = "log" if _LOG in kinds else "linear"
    return where, name, _Range(float(bounds[0]), float(bounds[1]), _INTEGER in kinds, scaling)


def _value(text: str) -> int | float | str:
    """A whole number where it is written as one, another number, or text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _distribution(space: SearchSpace, name: str, said: Any, where: str) -> BaseDistribution:
    try:
        if isinstance(said, _Range):
            return _of_range(space, name, said, where)
        if isinstance(said, _Choices):
            return CategoricalDistribution([_checked(each, where) for each in said.values])
        value = _checked(said, where)
        if isinstance(value, bool | str):
            return CategoricalDistribution([value])
        return IntDistribution(value, value) if isinstance(value, int) else FloatDistribution(value, value)
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(str(error), where=where) from error


def _of_range(space: SearchSpace, name: str, said: _Range, where: str) -> BaseDistribution:
    known = {each.name: each.scaling for each in space.parameters}
    if said.scaling == "log" and known.get(name, "log") != "log":
        raise InvalidInputError(
            f"the prior searches {name} under {known[name]} scaling", where=where, fix="leave log out"
        )
    _checked(said.lower, where)
    _checked(said.upper, where)
    log = said.scaling == "log" or known.get(name) == "log"
    if not said.integer:
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
