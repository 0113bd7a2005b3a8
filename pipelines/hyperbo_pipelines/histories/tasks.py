"""Which task a trial belongs to: the study's name, a part of it, or an attribute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.histories.files import name_text
from hyperbo_pipelines.histories.history import Run, Study
from hyperbo_pipelines.histories.merge import merge_all


def by_task(studies: Sequence[Study], task: str = "") -> tuple[list[Study], int]:
    """Studies of one task each, whose name is the task's.

    Args:
      studies: what the tools recorded.
      task: empty: the study's name is the task's. A text with a bracket: a regular expression that the
        study's name matches, of which the first group is the task. Any other: the name of an attribute of
        the trial or the study, or of a hyperparameter, whose value is the task.

    Returns:
      The studies in the order of their tasks; and how many trials were left out, since they ended without a
      result and have no such attribute. With a given task, an id is `<study>/<id>`.

    Raises:
      InvalidInputError: two studies have one name; the name does not match; an attribute is missing; or the
        name of a task is empty.

    >>> study = Study("Optuna", "", "net-seed1", (Run("0", "done", {}),))
    >>> [(each.name, each.runs[0].trial_id) for each in by_task([study], "(.+)-seed.*")[0]]
    [('net', 'net-seed1/0')]
    """
    for study in studies:
        name_text(study.name, "the name of a study", study.source)
    if not task:
        _check_names(studies)
        return sorted(studies, key=lambda each: each.name), 0
    pattern = _pattern(task) if "(" in task else None
    found: dict[str, Study] = {}
    without = 0
    for study in studies:
        runs: dict[str, list[Run]] = {}
        name = _part(pattern, study) if pattern else ""
        for run in study.runs:
            value = name or _attribute(run, study, task)
            if value is None:
                if run.status == "done":
                    raise InvalidInputError(
                        f"the trial {run.trial_id} of the study {study.name!r} has no attribute {task!r}",
                        where=study.source,
                        fix="name another one by --task, or leave it out to take the study's name",
                    )
                without += run.status != "running"
                continue
            text = value if isinstance(value, str) else str(value)
            text = name_text(text, f"the task by {shown(task)}", f"{study.source}: {study.name}")
            values = {key: each for key, each in run.values.items() if key != task}
            renamed = replace(run, trial_id=f"{study.name}/{run.trial_id}", values=values)
            runs.setdefault(text, []).append(renamed)
        for text, some in runs.items():
            parameters = tuple(each for each in study.parameters if each.name != task)
            part = replace(study, name=text, runs=tuple(some), parameters=parameters)
            found[text] = _joined(found[text], part) if text in found else part
    return [found[name] for name in sorted(found)], without


def _joined(one: Study, other: Study) -> Study:
    """Two studies of one task."""
    if one.objectives != other.objectives:
        raise InvalidInputError(
            f"studies of the task {one.name!r} have other objectives or directions",
            where=other.source,
            fix="import them as two datasets",
        )
    parameters = merge_all([one, other])
    source = one.source if other.source in one.source.split(", ") else f"{one.source}, {other.source}"
    return replace(one, runs=(*one.runs, *other.runs), parameters=parameters, source=source)


def _check_names(studies: Sequence[Study]) -> None:
    seen: dict[str, Study] = {}
    for study in studies:
        other = seen.setdefault(study.name, study)
        if other is not study:
            raise InvalidInputError(
                f"two studies are called {study.name!r}: of {other.source} and of {study.source}",
                fix="rename one, or say by --task what names the task",
            )


def _pattern(task: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(task)
    except re.error as error:
        raise InvalidInputError(
            f"{shown(task)} is not a regular expression: {error}",
            where="--task",
            fix="write one such as '(.+)-seed.*'",
        ) from error
    if pattern.groups != 1:
        raise InvalidInputError(
            f"{shown(task)} has {pattern.groups} groups", where="--task", fix="put the task in one bracket"
        )
    return pattern


def _part(pattern: re.Pattern[str], study: Study) -> str:
    match = pattern.fullmatch(study.name)
    if match is None:
        raise InvalidInputError(
            f"the name {study.name!r} does not match {pattern.pattern}",
            where=study.source,
            fix="write another --task, or rename the study",
        )
    return name_text(match[1], "the task", f"{study.source}: {study.name}")


def _attribute(run: Run, study: Study, task: str) -> Any:
    for values in (run.attributes, study.attributes, run.values):
        if values.get(task) is not None:
            return values[task]
    return None
