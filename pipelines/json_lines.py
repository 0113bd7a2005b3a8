"""Lines of JSON, parsed fast and with the same float64 that the standard module reads."""

from __future__ import annotations

import json
from typing import Any

import orjson

from hyperbo.errors import InvalidInputError


def json_value(content: bytes) -> Any:
    """Parse one JSON text; a bare NaN and Infinity, and 1e999, are the floats they are to Python.

    orjson reads what it accepts, the standard module the rest: both round a decimal to the nearest
    float64. An integer of more than 64 bits may come as a float; converted to float64, it is the same.

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
