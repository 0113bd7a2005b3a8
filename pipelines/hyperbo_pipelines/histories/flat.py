"""Nested settings as a flat table: what trackers of experiments record as configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hyperbo.errors import InvalidInputError

_DEEPEST = 8


def flattened(values: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Plain values by the dotted names of nested tables; a list becomes its JSON text, a null is left out.

    Raises:
      InvalidInputError: tables are nested too deeply.

    >>> flattened({"optimizer": {"name": "sgd", "betas": [0.9, 0.99]}, "note": None})
    {'optimizer.name': 'sgd', 'optimizer.betas': '[0.9, 0.99]'}
    """
    if depth > _DEEPEST:
        raise InvalidInputError(f"{prefix} is nested too deeply", fix="flatten the configuration")
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flattened(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list | tuple):
            found[f"{prefix}{name}"] = json.dumps(value)
        elif value is not None:
            found[f"{prefix}{name}"] = value
    return found
