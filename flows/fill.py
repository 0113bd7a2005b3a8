"""Frozen dataclasses filled from plain values, such as a file of settings holds; nothing unknown passes."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hyperbo.errors import InvalidInputError

T = TypeVar("T")


def fill(kind: type[T], values: Mapping[str, Any], where: str, default: T | None = None) -> T:
    """Make a dataclass of named values, nested ones of nested tables.

    Pydantic would fill them too, but passes over the keys of a dataclass that it does not know.

    Args:
      kind: the dataclass.
      values: its fields by name.
      where: the place of the values, for messages.
      default: gives the fields that are not named; None: the defaults of the dataclass.

    Raises:
      InvalidInputError: a key is unknown, a value is missing or of another type, or the dataclass refuses it.

    >>> from hyperbo.methods import Decision
    >>> fill(Decision, {"coefficient": 2}, "arms.toml").coefficient
    2.0
    """
    hints = get_type_hints(kind)
    settable = {each.name: each for each in fields(kind) if each.init}  # type: ignore[arg-type]
    unknown = [name for name in values if name not in settable]
    if unknown:
        raise InvalidInputError(
            f"unknown setting {unknown[0]!r}",
            where=where,
            fix=f"use {', '.join(settable)}" if settable else "it has no settings",
        )
    given = {}
    for name, each in settable.items():
        before = getattr(default, name) if default is not None else _default(each)
        if name in values:
            given[name] = _value(hints[name], values[name], f"{where}, {name}", before)
        elif before is MISSING:
            raise InvalidInputError(f"{name} is missing", where=where, fix="give it")
        else:
            given[name] = before
    try:
        return kind(**given)
    except InvalidInputError as error:
        raise InvalidInputError(str(error), where=where) from error


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _value(hint: Any, value: Any, where: str, before: Any) -> Any:
    origin = get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise _wrong(value, "a table", where)
        # The defaults of a nested table are its owner's: FSBO's mean is zero unless it says otherwise.
        return fill(hint, value, where, before if isinstance(before, hint) else None)
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        if value is None and len(members) < len(get_args(hint)):
            return None
        if len(members) == 1:
            return _value(members[0], value, where, before)
    if origin is Literal:
        if value not in get_args(hint):
            raise _wrong(value, f"one of {', '.join(map(str, get_args(hint)))}", where)
        return value
    if origin is tuple:
        return _tuple(get_args(hint), value, where)
    if hint is float and type(value) is int:
        return float(value)
    # bool is an int to Python, and no number here.
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise _wrong(value, _NAMES.get(hint, str(hint)), where)


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _tuple(members: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, "a list", where)
    if len(members) == 2 and members[1] is Ellipsis:
        members = (members[0],) * len(value)
    if len(members) != len(value):
        raise _wrong(value, f"a list of {len(members)}", where)
    return tuple(
        _value(member, each, f"{where}[{place}]", MISSING)
        for place, (member, each) in enumerate(zip(members, value, strict=True))
    )


def _wrong(value: Any, wanted: str, where: str) -> InvalidInputError:
    return InvalidInputError(f"{value!r} is not {wanted}", where=where, fix=f"give {wanted}")
