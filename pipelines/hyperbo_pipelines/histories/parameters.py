"""The hyperparameters of all tasks together: declared ones merged, others guessed, conditions found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.histories.conditions import condition_of
from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.files import MOST_PARAMETERS, name_text
from hyperbo_pipelines.histories.guess import MOST_LEVELS, distinct, guess_parameter
from hyperbo_pipelines.histories.history import Run, Study
from hyperbo_pipelines.histories.levels import as_text, storable
from hyperbo_pipelines.histories.merge import merge_all
from hyperbo_pipelines.histories.steps import without_step

# So many different values, one for each trial, name the trials.
_FEWEST_NAMES = 5


@dataclass(frozen=True)
class Parameters:
    """The hyperparameters of an import.

    Attributes:
      drafts: the hyperparameters.
      left_out: names of recorded settings that are none, and why.
      undeclared: names of those that are some, but no space file can declare them, and why.
    """

    drafts: tuple[ParameterDraft, ...]
    left_out: Mapping[str, str]
    undeclared: Mapping[str, str]


def find_parameters(studies: Sequence[Study], strict: bool = True) -> Parameters:
    """Find the hyperparameters of studies, each of one task.

    Args:
      studies: what the tools recorded; trials that run are not looked at.
      strict: whether a hyperparameter that some trials lack, and nothing explains, is an error; else a note.

    Raises:
      InvalidInputError: types differ among studies, values are of mixed types, or `strict` refuses.
    """
    declared = {draft.name: draft for draft in merge_all(studies)}
    runs = [run for study in studies for run in study.runs if run.status != "running"]
    names = dict.fromkeys((*declared, *(name for run in runs for name in run.values)))
    where = ", ".join(dict.fromkeys(study.source for study in studies[:3]))
    if len(names) > MOST_PARAMETERS:
        raise InvalidInputError(
            f"trials have {len(names)} settings, and at most {MOST_PARAMETERS} are read",
            where=where,
            fix="import fewer studies at once",
        )
    drafts: dict[str, ParameterDraft] = {}
    left_out: dict[str, str] = {}
    undeclared: dict[str, str] = {}
    for name in names:
        name_text(name, "a parameter", where)
        draft = declared.get(name)
        values = [run.values[name] for run in runs if name in run.values]
        reason = _no_hyperparameter(name, draft, values, studies)
        if reason:
            left_out[name] = reason
            continue
        found = _storable(draft or _guessed(name, values, where), values, where)
        if obstacle := found.obstacle():
            undeclared[name] = obstacle
        else:
            drafts[name] = found
    _leave_out_children(drafts, undeclared, runs)
    if not drafts:
        reasons = "".join(f"; {name}: {reason}" for name, reason in islice(undeclared.items(), 3))
        raise InvalidInputError(
            f"no setting of the trials is a hyperparameter that a space file can declare{reasons}",
            where=where,
            fix="give studies with others" if undeclared else "give studies whose trials differ",
        )
    with_conditions = [
        _with_condition(draft, list(drafts.values()), runs, strict, where) for draft in drafts.values()
    ]
    return Parameters(tuple(with_conditions), left_out, undeclared)


def encoded(value: Any, texts: bool) -> Any:
    """A recorded value as a row holds it: as text, if the levels are texts."""
    return as_text(value) if texts else value


def _leave_out_children(
    drafts: dict[str, ParameterDraft], undeclared: dict[str, str], runs: Sequence[Run]
) -> None:
    """Move the hyperparameters that some trials lack because of a parent that cannot be declared."""
    for _ in range(len(drafts)):
        for name, draft in list(drafts.items()):
            parent = draft.condition.parameter if draft.condition else ""
            if parent in undeclared and any(name not in run.values for run in runs):
                undeclared[name] = f"it depends on {parent}"
                del drafts[name]


def _no_hyperparameter(
    name: str, draft: ParameterDraft | None, values: Sequence[Any], studies: Sequence[Study]
) -> str:
    """Why a setting is no hyperparameter; empty if it is one."""
    if draft is None and not values:
        return "no trial that ended has a value"
    levels = distinct(values)
    if len(levels) > 1 and (draft is None or _is_constant_in_each(name, studies)):
        each = [distinct(run.values[name] for run in study.runs if name in run.values) for study in studies]
        repeated = any(sum(name in run.values for run in study.runs) > 1 for study in studies)
        if repeated and all(len(found) <= 1 for found in each):
            return "it is the same in all trials of a task, and another in other tasks: it describes the task"
    if draft is not None:
        return ""
    texts = [level for level in levels if isinstance(level, str)]
    if len(texts) > MOST_LEVELS or (len(texts) == len(values) >= _FEWEST_NAMES):
        return f"it has {len(texts)} different texts: it names trials"
    if "seed" in name.lower() or "random_state" in name.lower():
        return "it is the seed of random numbers"
    return ""


def _is_constant_in_each(name: str, studies: Sequence[Study]) -> bool:
    return all(each.kind == "constant" for study in studies for each in study.parameters if each.name == name)


def _guessed(name: str, values: Sequence[Any], where: str) -> ParameterDraft:
    kinds = {
        "text" if isinstance(value, str) else "truth" if isinstance(value, bool) else "number"
        for value in values
    }
    levels = distinct(values)
    # A few words among numbers, such as `auto`, are levels beside them.
    if len(kinds) > 1 and len(levels) <= max(2, len(values) // 2, 12) and len(levels) <= 12:
        listed = ", ".join(map(shown, levels))
        note = f"Guess: a choice, because the values are of mixed types: {listed}. They are written as texts."
        return ParameterDraft(name, "choice", levels=levels, notes=(note,))
    return guess_parameter(name, values, where)


def _storable(draft: ParameterDraft, values: Sequence[Any], where: str) -> ParameterDraft:
    if draft.kind in ("real", "integer") and draft.lower == draft.upper:
        draft = replace(draft, kind="constant", levels=(draft.lower,))
    draft = without_step(draft, values)
    if draft.kind in ("real", "integer", "boolean"):
        return draft
    levels = storable(distinct((*draft.levels, *values)), draft.name, where)
    for level in levels:
        if isinstance(level, str):
            name_text(level, f"a level of {draft.name}", where)
    kind = "choice" if draft.kind == "constant" and len(levels) > 1 else draft.kind
    if kind == "ordinal" and list(levels) != sorted(levels):
        kind = draft.kind if levels == draft.levels else "choice"
    return replace(draft, kind=kind, levels=levels)


def _with_condition(
    draft: ParameterDraft,
    others: Sequence[ParameterDraft],
    runs: Sequence[Run],
    strict: bool,
    where: str,
) -> ParameterDraft:
    # A trial that failed or was pruned may have ended before it had all its values.
    trials = [run.values for run in runs if run.status == "done"] or [run.values for run in runs]
    lacking = sum(draft.name not in values for values in trials)
    given = draft.condition
    if given and all(
        draft.name in values or not given.holds(values.get(given.parameter)) for values in trials
    ):
        return replace(draft, condition=_with_storable(given, others))
    if not lacking:
        return replace(draft, condition=None)
    found = condition_of(draft.name, others, trials)
    if found:
        note = (
            f"Guess: conditional. {lacking} of {len(trials)} trials have no value; {found.parameter} says "
            "which."
        )
        return replace(draft, condition=_with_storable(found, others), notes=(*draft.notes, note))
    what = (
        f"{lacking} of {len(trials)} trials have no value of {draft.name}, and no other parameter says which"
    )
    if strict:
        raise InvalidInputError(
            what,
            where=where,
            fix="write what says it: hyperbo data space drafts a space file, which --space takes when it is "
            "corrected",
        )
    return replace(draft, condition=None, notes=(*draft.notes, f"{what}: these trials will be rejected."))


def _with_storable(condition: Any, others: Sequence[ParameterDraft]) -> Any:
    parent = next((each for each in others if each.name == condition.parameter), None)
    if parent is None:
        return None
    are_texts = bool(parent.levels) and all(isinstance(level, str) for level in parent.levels)
    return replace(condition, values=tuple(encoded(value, are_texts) for value in condition.values))
