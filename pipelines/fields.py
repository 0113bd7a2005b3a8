"""The fields of a raw row: numbers, texts and curves, taken only where they are what they should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import NoneType
from typing import Any

from hyperbo.errors import InvalidInputError


def number(value: Any, column: str) -> float:
    """A number as float64; NaN where there is none.

    >>> number(3, "epoch"), number(None, "epoch")
    (3.0, nan)

    Raises:
      InvalidInputError: the value is no number, or too large an integer; names the column.
    """
    if value is None:
        return math.nan
    # bool is an int to Python, and no number here.
    if type(value) not in (int, float):
        raise InvalidInputError(f"{column} is {shown(value)}, not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidInputError(f"{column} is too large for a float64") from error


def required_number(row: Mapping[str, Any], column: str) -> float:
    """A number that must be there.

    Raises:
      InvalidInputError: it is absent, null or no number.
    """
    if row.get(column) is None:
        raise InvalidInputError(f"{column} is {'null' if column in row else 'missing'}")
    return number(row[column], column)


def text(row: Mapping[str, Any], column: str) -> str:
    """A text that must be there and not be empty.

    Raises:
      InvalidInputError: it is absent, empty, no text, or text that UTF-8 cannot spell.
    """
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(
            f"{column} is {shown(value)}, not a text" if column in row else f"{column} is missing"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:  # A lone surrogate: JSON can spell it, no file format can store it.
        raise InvalidInputError(f"{column} is not text: {error}") from error
    return value


def curve(values: Any, column: str) -> tuple[float, ...]:
    """An array of numbers, NaN for each null.

    Raises:
      InvalidInputError: the value is no array, or has an entry that is no number.
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
    """A value as a message shows it: not at any length."""
    spelled = repr(value)
    return spelled if len(spelled) <= 60 else f"{spelled[:57]}..."
