"""Which hyperparameters are conditional, found from the trials that have a value of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.histories.draft import ConditionDraft, ParameterDraft
from pipelines.histories.guess import distinct

Values = Mapping[str, Any]
_MOST_LEVELS = 20


def condition_of(
    name: str, parents: Sequence[ParameterDraft], trials: Sequence[Values]
) -> ConditionDraft | None:
    """The condition that explains which trials have a value of a hyperparameter.

    A parent explains it if the trials that have a value are exactly those in which the parent has certain
    levels, or, if the parent is an integer, those on one side of a number. The first parent that does is
    taken: parents with a value in every trial come before others, and choices before integers.

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

    def late(parent: ParameterDraft) -> tuple[bool, bool]:
        return any(parent.name not in trial for trial in trials), parent.kind == "integer"

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
    if parent.kind in ("choice", "ordinal", "boolean") and inactive and len(active) <= _MOST_LEVELS:
        return ConditionDraft(parent.name, active)
    if parent.kind == "integer" and inactive:
        if max(inactive) < min(active):
            return ConditionDraft(parent.name, lower=min(active))
        if max(active) < min(inactive):
            return ConditionDraft(parent.name, upper=max(active))
    return None
