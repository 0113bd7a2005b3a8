"""Numbers that were searched in steps: a few become an ordinal, of more the step is lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.history import Study

MOST_STEPS = 32
# Of a step: a value that is no farther from the grid lies on it.
_ROUNDING = 1e-6


def joined_step(one: ParameterDraft, start: float, step: float) -> float:
    """The step of a draft and of numbers that begin at `start` and have a step, too; 0 where none fits both.

    >>> joined_step(ParameterDraft("width", "integer", 8, 64, step=8), 16, 8)
    8
    """
    if one.step != step or not (step > 0 and math.isfinite(one.lower) and math.isfinite(start)):
        return 0.0
    return step if ((_exact(start) - _exact(one.lower)) / _exact(step)).denominator == 1 else 0.0


def on_grid(study: Study) -> Study:
    """A study whose values lie on the grids of their parameters: without the errors of floating point."""
    drafts = {each.name: each for each in study.parameters if each.kind == "real" and _has_grid(each)}
    if not drafts:
        return study

    def moved(values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: _moved(value, drafts[name]) if name in drafts else value for name, value in values.items()
        }

    return replace(study, runs=tuple(replace(run, values=moved(run.values)) for run in study.runs))


def without_step(draft: ParameterDraft, values: Sequence[Any]) -> ParameterDraft:
    """The draft as a space file can hold it: an ordinal of the steps, or a number with a comment.

    Args:
      draft: of a hyperparameter.
      values: what trials have of it, as `on_grid` gives them.

    >>> without_step(ParameterDraft("rate", "real", 0.1, 0.4, step=0.1), [0.3]).levels
    (0.1, 0.2, 0.3, 0.4)
    """
    if not _has_grid(draft):
        return replace(draft, step=0.0)
    low, step = _exact(draft.lower), _exact(draft.step)
    count = math.floor((_exact(draft.upper) - low) / step) + 1
    grid = [low + place * step for place in range(min(count, MOST_STEPS))]
    levels = tuple(int(each) if draft.kind == "integer" else float(each) for each in grid)
    other = next((value for value in values if value not in levels), None)
    steps = f"It was searched in steps of {draft.step:g} from {draft.lower:g} to {draft.upper:g}"
    if count > MOST_STEPS or other is not None:
        reason = f"these are {count} values" if count > MOST_STEPS else f"a trial has {other:g}"
        note = f"{steps}. The step is lost, because {reason}: numbers between may be proposed."
        return replace(draft, step=0.0, notes=(*draft.notes, note))
    note = f"{steps}: an ordinal of these {count} values."
    return ParameterDraft(
        draft.name,
        "ordinal" if count > 1 else "constant",
        levels=levels,
        condition=draft.condition,
        role=draft.role,
        notes=(*draft.notes, note),
    )


def _has_grid(draft: ParameterDraft) -> bool:
    numbers = (draft.lower, draft.upper, draft.step)
    return draft.kind in ("real", "integer") and draft.step > 0 and all(map(math.isfinite, numbers))


def _moved(value: Any, draft: ParameterDraft) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    low, step = _exact(draft.lower), _exact(draft.step)
    nearest = low + round((_exact(value) - low) / step) * step
    return float(nearest) if abs(_exact(value) - nearest) <= _ROUNDING * step else value


def _exact(number: float) -> Fraction:
    """A number as it is written in decimals: 0.1 is a tenth."""
    return Fraction(repr(number))
