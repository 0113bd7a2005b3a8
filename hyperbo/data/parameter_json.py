"""Parameters as plain values: what JSON and TOML hold of them, checked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Condition, Parameter
from hyperbo.errors import InvalidInputError

# By type: the fields that are required, and those that may be given.
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


def parameter_json(each: Parameter | Choice) -> dict[str, Any]:
    """What `parameter_of` takes; a real is written as before there were other types."""
    fields: dict[str, Any] = {"name": each.name}
    if isinstance(each, Parameter):
        fields |= {"lower": each.lower, "upper": each.upper, "scaling": each.scaling}
    elif each.type == "constant":
        fields["value"] = each.levels[0]
    elif each.type != "boolean":
        fields["levels"] = list(each.levels)
    if each.type != "real":
        fields["type"] = each.type
    if each.condition is not None:
        given = asdict(each.condition) | {"values": list(each.condition.values)}
        fields["condition"] = {key: value for key, value in given.items() if value not in (None, [])}
    return fields | ({"role": each.role} if each.role else {})
