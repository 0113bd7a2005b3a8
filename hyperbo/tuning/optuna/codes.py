"""Values of Optuna's trials as codes of a prior's parameters, and which parameters they make active."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from hyperbo.data.choice import Choice
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError


def level_of(parameter: Choice, value: Any) -> float | None:
    """The code of a value; None if it is no level.

    >>> level_of(Choice("schedule", ("null", "cosine")), None)
    0.0
    """
    if parameter.is_text and not isinstance(value, str):
        # Levels of mixed types are recorded as texts: those of JSON.
        value = json.dumps(value) if value is None or isinstance(value, bool | int | float) else value
    if not isinstance(value, bool | int | float | str):
        return None
    try:
        return parameter.code(value)
    except InvalidInputError:
        return None


def codes_of(space: SearchSpace, values: Mapping[str, Any]) -> dict[str, float]:
    """The codes of those values that are values of a prior's parameters, by name."""
    codes = {}
    for each in space.parameters:
        value = values.get(each.name)
        code = level_of(each, value) if isinstance(each, Choice) else as_number(value)
        if code is not None:
            codes[each.name] = code
    return codes


def as_number(value: Any) -> float | None:
    """The value if it is a number that a float64 can hold, else None; True and False are no numbers.

    >>> as_number(3), as_number(True), as_number("3")
    (3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def active_names(prior: SearchSpace, names: Iterable[str], values: Mapping[str, Any]) -> set[str]:
    """The parameters of a space to tune that are active, given values, by the prior's conditions."""
    codes = codes_of(prior, values)
    known = {name: prior.parameter(name).value(code) for name, code in codes.items()}
    return {name for name in names if name not in prior.names or prior.is_active(name, known)}


def never_active(prior: SearchSpace, space: Mapping[str, BaseDistribution]) -> set[str]:
    """The parameters whose parent is held at a value at which they are inactive."""
    held = {}
    for name, each in space.items():
        if name in prior.names and each.single():
            held[name] = each.choices[0] if isinstance(each, CategoricalDistribution) else vars(each)["low"]
    conditions = {each.name: each.condition for each in prior.parameters if each.condition}
    asked = [name for name, condition in conditions.items() if condition.parameter in held]
    return set(asked) - active_names(prior, asked, held)
