"""One hyperparameter of two drafts: the union of their ranges or levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hyperbo.data.parameter import Scaling
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.guess import distinct
from hyperbo_pipelines.histories.history import Study
from hyperbo_pipelines.histories.steps import joined_step

_NUMBERS = ("real", "integer")
_STEPS_DIFFER = "The steps of the studies differ and are lost: numbers between may be proposed."


def merge(one: ParameterDraft, other: ParameterDraft, where: str = "") -> ParameterDraft:
    """The union of two drafts of a hyperparameter.

    Ranges become the smallest range that holds both; levels are joined in first-seen order. A constant joins
    the range or the levels of the other. Where only one is searched on a log scale, so is the union, if it is
    positive. A step stays if it fits both. A condition that only one has, or that differs, is left out: it is
    then found from the trials.

    Args:
      one: a draft of the hyperparameter.
      other: another one of the same.
      where: the place, for messages.

    Raises:
      InvalidInputError: the types differ, such as a real number and a choice.

    >>> a, b = ParameterDraft("lr", "real", 0.01, 0.1, "log"), ParameterDraft("lr", "real", 0.001, 0.05)
    >>> merge(a, b).lower, merge(a, b).upper, merge(a, b).scaling
    (0.001, 0.1, 'log')
    """
    if one == other:
        return one
    one, other = _without_condition(one, other), _without_condition(other, one)
    notes = tuple(dict.fromkeys((*one.notes, *other.notes)))
    if one.kind == "constant" and other.kind != "constant":
        one, other = other, one
    if one.kind in _NUMBERS and other.kind in _NUMBERS and one.kind == other.kind:
        lower, upper = min(one.lower, other.lower), max(one.upper, other.upper)
        scaling, step = _scaling(one, other, lower, upper), joined_step(one, other.lower, other.step)
        if not step and (one.step or other.step):
            notes = (*notes, _STEPS_DIFFER)
        return replace(one, lower=lower, upper=upper, scaling=scaling, notes=notes, step=step)
    if one.kind in _NUMBERS and other.kind == "constant" and _is_number(other.levels[0], one.kind):
        (value,) = other.levels
        lower, upper = min(one.lower, value), max(one.upper, value)
        scaling, step = _scaling(one, one, lower, upper), joined_step(one, value, one.step)
        if not step and one.step:
            notes = (*notes, _STEPS_DIFFER)
        return replace(one, lower=lower, upper=upper, scaling=scaling, notes=notes, step=step)
    if one.kind not in _NUMBERS and other.kind not in _NUMBERS:
        levels = distinct((*_levels(one), *_levels(other)))
        if len(levels) == 2 and all(isinstance(level, bool) for level in levels):
            return replace(one, kind="boolean", levels=(), notes=notes)
        same_order = one.levels == other.levels or _increase(levels)
        both = one.kind == other.kind == "ordinal" and same_order
        kind = "constant" if len(levels) == 1 else "ordinal" if both else "choice"
        return replace(one, kind=kind, levels=levels, notes=notes)
    raise InvalidInputError(
        f"the parameter {one.name!r} is {_described(one)} in one study and {_described(other)} in another",
        where=where,
        fix="rename it in one of them, or import them as two datasets",
    )


def merge_all(studies: Sequence[Study]) -> tuple[ParameterDraft, ...]:
    """The hyperparameters that studies declare, each once, in the order in which they are first declared.

    Raises:
      InvalidInputError: two studies declare a hyperparameter with different types.
    """
    found: dict[str, ParameterDraft] = {}
    for study in studies:
        for draft in study.parameters:
            known = found.get(draft.name)
            found[draft.name] = merge(known, draft, study.source) if known else draft
    return tuple(found.values())


def _without_condition(one: ParameterDraft, other: ParameterDraft) -> ParameterDraft:
    return one if one.condition == other.condition else replace(one, condition=None)


def _scaling(one: ParameterDraft, other: ParameterDraft, lower: float, upper: float) -> Scaling:
    for scaling in (one.scaling, other.scaling):
        if (scaling == "log" and lower > 0) or (scaling == "log1m" and upper < 1):
            return scaling
    return "linear"


def _is_number(value: object, kind: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return kind == "real" or float(value).is_integer()


def _increase(levels: tuple[object, ...]) -> bool:
    """Whether levels are numbers in order: two orders of texts cannot be joined to one."""
    numbers = [each for each in levels if isinstance(each, int | float)]
    return len(numbers) == len(levels) and numbers == sorted(numbers)


def _levels(draft: ParameterDraft) -> tuple[object, ...]:
    return (False, True) if draft.kind == "boolean" else draft.levels


def _described(draft: ParameterDraft) -> str:
    article = "an" if draft.kind[0] in "aeio" else "a"
    values = f"{draft.lower:g} to {draft.upper:g}" if draft.kind in _NUMBERS else shown(_levels(draft))
    return f"{article} {draft.kind} ({values})"
