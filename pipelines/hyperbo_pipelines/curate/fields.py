"""Rows of JSON lines, and their fields: numbers, texts and curves of the right type, or an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import NoneType
from typing import Any

import orjson

from hyperbo.errors import InvalidInputError


def number(value: Any, column: str) -> float:
    """A number as float64; NaN for null.

    >>> number(3, "epoch"), number(None, "epoch")
    (3.0, nan)

    Raises:
      InvalidInputError: the value is not a number, or an integer that is too large; names the column.
    """
    if value is None:
        return math.nan
    # bool is a kind of int in Python, but not a number here.
    if type(value) not in (int, float):
        raise InvalidInputError(f"{column} is {shown(value)}, not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidInputError(f"{column} is too large for a float64") from error


def required_number(row: Mapping[str, Any], column: str) -> float:
    """A number that is required.

    Raises:
      InvalidInputError: the value is absent, null or not a number.
    """
    if row.get(column) is None:
        raise InvalidInputError(f"{column} is {'null' if column in row else 'missing'}")
    return number(row[column], column)


def text(row: Mapping[str, Any], column: str) -> str:
    """A text that is required and not empty.

    Raises:
      InvalidInputError: the value is absent, empty, not a text, or a text that UTF-8 cannot encode.
    """
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(
            f"{column} is {shown(value)}, not a text" if column in row else f"{column} is missing"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:  # A lone surrogate: JSON allows it, no file format can store it.
        raise InvalidInputError(f"{column} is not text: {error}") from error
    return value


def curve(values: Any, column: str) -> tuple[float, ...]:
    """An array of numbers, NaN for each null.

    Raises:
      InvalidInputError: the value is not an array, or has an entry that is not a number.
    """
    if not isinstance(values, list):
        raise InvalidInputError(f"{column} is {shown(values)}, not an array")
    types = set(map(type, values))
    if types == {float}:
        return tuple(values)
    if not types <= {int, float, NoneType}:
        wrong = next(value for value in values if type(value) not in (int, float, NoneType))
        raise InvalidInputError(f"{column} has the entry {shown(wrong)}, not a number")
    return tuple(number(value, column) for value in values)


def shown(value: Any) -> str:
    """A value as text for a message, at most 60 characters."""
    spelled = repr(value)
    return spelled if len(spelled) <= 60 else f"{spelled[:57]}..."


def json_value(content: bytes) -> Any:
    """Parse one JSON text; a bare NaN and Infinity, and 1e999, become Python's floats.

    orjson is fast and parses most texts; Python's module parses the rest. Both round a decimal to the nearest
    float64. An integer of more than 64 bits may become a float; as float64 it is the same.

    >>> json_value(b'[0.1, 1e999, NaN, null]')
    [0.1, inf, nan, None]

    Raises:
      InvalidInputError: the content is not UTF-8, or not JSON.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"is not JSON: {error}") from error


def json_object(content: bytes) -> dict[str, Any]:
    """Parse one line that must be a JSON object.

    Raises:
      InvalidInputError: the content is not UTF-8, not JSON, or not an object.
    """
    row = json_value(content)
    if not isinstance(row, dict):
        raise InvalidInputError(f"is a JSON {type(row).__name__}, not an object")
    return row
