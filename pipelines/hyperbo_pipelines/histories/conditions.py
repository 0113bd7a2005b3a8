"""Which hyperparameters are conditional, found from the trials that have a value of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperbo_pipelines.histories.draft import ConditionDraft, ParameterDraft
from hyperbo_pipelines.histories.guess import distinct

Values = Mapping[str, Any]
_MOST_LEVELS = 20
# Of a real parent: fewer values on one side of a number may lie there by chance. Five of ten do in 2 of 252
# cases.
_FEWEST_SIDES = 5


def condition_of(
    name: str, parents: Sequence[ParameterDraft], trials: Sequence[Values]
) -> ConditionDraft | None:
    """The condition that explains which trials have a value of a hyperparameter.

    A parent explains it if the trials that have a value are exactly those in which the parent has certain
    levels, or, if the parent is a number or an ordinal of numbers, those on one side of a number. The first
    parent that does is taken: parents with a value in every trial come before others, choices before
    integers, and these before real numbers.

    Args:
      name: the hyperparameter, of which some trials have no value.
      parents: what it may depend on; the hyperparameter itself is left out.
      trials: the values of each trial.

    Returns:
      The condition; None: no parent explains it.

    >>> layers = ParameterDraft("layers", "integer", 1, 3)
    >>> trials = [{"layers": 1}, {"layers": 2, "second": 8}, {"layers": 3, "second": 9}]
    >>> condition_of("second", [layers], trials)
    ConditionDraft(parameter='layers', values=(), lower=2, upper=None)
    """
    others = [parent for parent in parents if parent.name != name]

    def late(parent: ParameterDraft) -> tuple[bool, bool, bool]:
        is_partial = any(parent.name not in trial for trial in trials)
        return is_partial, parent.kind == "real", parent.kind == "integer"

    for parent in sorted(others, key=late):
        found = _explained(name, parent, trials)
        if found:
            return found
    return None


def _explained(name: str, parent: ParameterDraft, trials: Sequence[Values]) -> ConditionDraft | None:
    if any(name in trial and parent.name not in trial for trial in trials):
        return None
    active = distinct(trial[parent.name] for trial in trials if name in trial)
    inactive = distinct(trial[parent.name] for trial in trials if name not in trial and parent.name in trial)
    # Where no trial shows the parent with another level, the parent's own condition explains it.
    if not active or len(distinct((*active, *inactive))) < len(active) + len(inactive):
        return None
    if not inactive:
        return None
    numbers = all(isinstance(each, int | float) for each in (*parent.levels, *active, *inactive))
    if parent.kind == "integer" or (parent.kind == "ordinal" and numbers):
        if max(inactive) < min(active):
            return ConditionDraft(parent.name, lower=min(active))
        if max(active) < min(inactive):
            return ConditionDraft(parent.name, upper=max(active))
    if parent.kind == "real" and min(len(active), len(inactive)) >= _FEWEST_SIDES:
        if max(inactive) < min(active):
            return ConditionDraft(parent.name, lower=_between(max(inactive), min(active)))
        if max(active) < min(inactive):
            return ConditionDraft(parent.name, upper=_between(max(active), min(inactive)))
    if parent.kind in ("choice", "ordinal", "boolean") and len(active) <= _MOST_LEVELS:
        return ConditionDraft(parent.name, active)
    return None


def _between(lower: float, upper: float) -> float:
    """A number between two, of few digits.

    >>> _between(0.4921, 0.5103)
    0.5
    """
    middle = (lower + upper) / 2
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((each for each in rounded if lower < each < upper), middle)
