"""Levels of a choice as a space file can hold them: all texts, all numbers, or true and false."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown


def storable(levels: Sequence[Any], name: str, where: str = "") -> tuple[Any, ...]:
    """The levels as they are, if they are all texts, all numbers, or true and false; else all as texts.

    Raises:
      InvalidInputError: two levels are the same text.

    >>> storable([32, 64], "batch"), storable([None, 3, "auto"], "depth")
    ((32, 64), ('null', '3', 'auto'))
    """
    kinds = {_kind(level) for level in levels}
    if kinds in ({"text"}, {"number"}, {"boolean"}):
        return tuple(levels)
    texts = tuple(map(as_text, levels))
    for place, text in enumerate(texts):
        if text in texts[:place]:
            raise InvalidInputError(
                f"{name} has the levels {shown(levels[texts.index(text)])} and {shown(levels[place])}, "
                "which are the same text",
                where=where,
                fix="record one of them in another way",
            )
    return texts


def as_text(level: Any) -> str:
    """A level as text: a text as it is, anything else as JSON.

    >>> as_text("relu"), as_text(None), as_text(True), as_text([0.9, 0.99])
    ('relu', 'null', 'true', '[0.9, 0.99]')
    """
    return level if isinstance(level, str) and level else json.dumps(level)


def _kind(level: Any) -> str:
    if isinstance(level, bool):
        return "boolean"
    if isinstance(level, int | float):
        return "number"
    return "text" if isinstance(level, str) and level else "other"
