"""What a hyperparameter is, guessed from its values: its type, range, scaling and role."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hyperbo.data.parameter import Scaling
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.histories.draft import ParameterDraft

MOST_LEVELS = 100
# Numbers of a longer span are searched on a logarithmic scale.
_DECADES = 2.0
# Whole numbers of so few levels, all powers of two, may be levels rather than a range.
_MOST_POWERS = 8
_ROLES = (
    ("learning_rate", r"(^|_)(lr|eta|learning_?rate|step_?size)(_|$)"),
    ("weight_decay", r"(^|_)(wd|l2|weight_?decay|reg(ularization)?|lambda)(_|$)"),
    ("dropout", r"drop"),
    ("momentum", r"(^|_)(momentum|beta_?[12]?)(_|$)"),
    ("width", r"(^|_)(width|units|hidden(_?(size|dim|units))?|channels|filters|neurons)(_|$)"),
    ("depth", r"(^|_)(depth|(n_|num_)?layers|max_?depth|blocks)(_|$)"),
)


def guess_parameter(name: str, values: Sequence[Any], where: str = "") -> ParameterDraft:
    """Guess a hyperparameter from the values that trials have.

    Args:
      name: its name.
      values: plain JSON values, one for each trial that has one; at least one.
      where: the place, for messages.

    Returns:
      The draft, with a note on each guess.

    Raises:
      InvalidInputError: the values are of mixed types, not plain, or not finite.

    >>> guess_parameter("lr", [0.1, 0.0003, 0.02]).scaling
    'log'
    """
    levels = distinct(values)
    types = {_type(value, name, where) for value in levels}
    if types == {"boolean", "number"} and all(level in (0, 1) for level in levels):
        note = "Guess: all values are true or false, written also as 1 and 0."
        return ParameterDraft(name, "boolean", role=guess_role(name), notes=(note,))
    if len(types) > 1:
        examples = [
            next(each for each in levels if _type(each, name, where) == kind) for kind in sorted(types)
        ]
        raise InvalidInputError(
            f"{name} has values of mixed types: {' and '.join(map(shown, examples))}",
            where=where,
            fix="write all of them as numbers, or all as texts",
        )
    (kind,) = types
    role = guess_role(name)
    if len(levels) == 1:
        note = f"Guess: a constant, because all {len(values)} trials that have it have this value."
        return ParameterDraft(name, "constant", levels=levels, role=role, notes=(note,))
    if kind == "boolean":
        return ParameterDraft(name, "boolean", role=role, notes=("Guess: all values are true or false.",))
    if kind == "text":
        if len(levels) > MOST_LEVELS:
            raise InvalidInputError(
                f"{name} has {len(levels)} texts, more than the {MOST_LEVELS} levels of a choice",
                where=where,
                fix="name it under ignore, or as the task",
            )
        note = f"Guess: a choice, because the values are texts; {len(levels)} levels were seen."
        return ParameterDraft(name, "choice", levels=levels, role=role, notes=(note,))
    return _number(name, [float(each) for each in levels], len(values), role)


def guess_role(name: str) -> str:
    """The role that a hyperparameter's name suggests; empty for none.

    >>> [guess_role(name) for name in ("lr", "optimizer.weight_decay", "n_layers", "activation")]
    ['learning_rate', 'weight_decay', 'depth', '']
    """
    plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return next((role for role, pattern in _ROLES if re.search(pattern, plain)), "")


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The different values in first-seen order; true and 1 are different, 1 and 1.0 are not.

    >>> distinct([1, True, 1.0, "a", "a"])
    (1, True, 'a')
    """
    seen: dict[Any, Any] = {}
    for value in values:
        seen.setdefault(_key(value), value)
    return tuple(seen.values())


def _key(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (type(value).__name__, value if isinstance(value, str | bool) else json.dumps(value))
    return value


def _type(value: Any, name: str, where: str) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float) and math.isfinite(value):
        return "number"
    raise InvalidInputError(
        f"{name} is {shown(value)}, not a finite number, a text, true or false",
        where=where,
        fix="leave these trials out, or name the column under ignore",
    )


def _number(name: str, values: Sequence[float], count: int, role: str) -> ParameterDraft:
    low, high = min(values), max(values)
    whole = all(each.is_integer() for each in values)
    scaling: Scaling = "linear"
    decades = math.log10(high / low) if low > 0 else 0.0
    near_one = 0.0 if whole or low < 0 or high >= 1 else math.log10((1 - low) / (1 - high))
    if near_one > max(decades, _DECADES) or (low >= 0.5 and near_one > 1):
        scaling = "log1m"
        reason = f"log1m, because the distances from 1 span {near_one:.1f} decades"
    elif decades > _DECADES:
        scaling = "log"
        reason = f"log, because the values span {decades:.1f} decades"
    else:
        reason = "linear, because the values span no more than two decades"
    seen = f"{count} values from {low:g} to {high:g}"
    if whole:
        lower, upper = int(low), int(high)
        kind = "integer"
        notes = [f"Guess: an integer, because {seen} are whole. Scaling: {reason}."]
        powers = [each > 0 and math.log2(each).is_integer() for each in values]
        if all(powers) and 2 < len(values) <= _MOST_POWERS and len(values) < count:
            listed = ", ".join(f"{each:g}" for each in sorted(values))
            notes.append(
                f'The {len(values)} values are all powers of two: type = "ordinal" with levels = [{listed}] '
                "may be meant."
            )
            scaling = "log"
    else:
        kind = "real"
        lower, upper = _nice_range(low, high, scaling)
        notes = [f"Guess: a real number; {seen}. Scaling: {reason}."]
    notes.append("Give the range that was searched, if it is another one.")
    return ParameterDraft(name, kind, lower, upper, scaling, role=role, notes=tuple(notes))


def _nice_range(low: float, high: float, scaling: Scaling) -> tuple[float, float]:
    """Bounds rounded outwards: to one digit, on a log scale to a power of ten.

    >>> _nice_range(0.00031, 0.42, "log"), _nice_range(0.13, 0.87, "linear")
    ((0.0001, 1.0), (0.1, 0.9))
    >>> _nice_range(0.62, 0.9993, "log1m")
    (0.6, 0.9999)
    """
    if scaling == "log":
        lower, upper = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return min(low, float(f"1e{lower}")), max(high, float(f"1e{upper}"))
    if scaling == "log1m":
        lower = math.floor(low * 10) / 10
        upper = float(f"{1 - 10.0 ** math.floor(math.log10(1 - high)):.12g}")
        # Bounds that are no farther out than the values would reject them; 1 itself is out of the domain.
        return lower, upper if high <= upper < 1 else high
    step = 10.0 ** math.floor(math.log10(high - low))
    lower, upper = math.floor(low / step) * step, math.ceil(high / step) * step
    if lower < 0 <= low:
        lower = 0.0
    lower, upper = float(f"{lower:.12g}"), float(f"{upper:.12g}")
    return min(lower, low), max(upper, high)
