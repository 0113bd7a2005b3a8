"""Table: the studies of an import as rows for each task, with the draft of their space file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.draft import ParameterDraft, SpaceDraft
from hyperbo_pipelines.histories.files import name_text
from hyperbo_pipelines.histories.history import Run, Study
from hyperbo_pipelines.histories.objective import choose_objective, ending
from hyperbo_pipelines.histories.parameters import encoded, find_parameters
from hyperbo_pipelines.histories.steps import on_grid
from hyperbo_pipelines.histories.tasks import by_task

# Columns of every row. A metric of the same name gets another.
_OWN = ("task", "trial", "status", "tool", "seconds", "started")
PARAMETER, _CURVE, _METRIC = "parameters.", "curve.", "metric."
_STATUS = {
    "column": "status",
    "done": ("done",),
    "diverged": ("diverged",),
    "infeasible": ("failed", "pruned"),
}
_MOST_METRICS = 1_000
_LONGEST_CURVE = 1_000_000


@dataclass(frozen=True)
class Options:
    """What the caller says of histories.

    Attributes:
      task: what names the task, as `by_task` takes it.
      objective: the metric that is tuned; empty: the tools say it, or its name does.
      direction: whether it is minimised or maximised; None: the tools say it, or its name does.
    """

    task: str = ""
    objective: str = ""
    direction: Direction | None = None


class Place(NamedTuple):
    """Where trials were recorded: what was read, and the study or the task in it."""

    source: str
    name: str

    def __str__(self) -> str:
        """The place as messages name it."""
        return f"{self.source}: {self.name}"


@dataclass(frozen=True)
class Table:
    """Rows of trials for each task, and the space file that describes them.

    Attributes:
      draft: the space file.
      rows: the rows of each task, by its name.
      tools: the tools with their versions.
      skipped: how many trials are left out, by the reason.
      undeclared: hyperparameters that no space file can declare, and why.
      places: where the trials of each task were recorded, for messages.
    """

    draft: SpaceDraft
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    tools: tuple[str, ...]
    skipped: Mapping[str, int]
    undeclared: Mapping[str, str]
    places: Mapping[str, Place]


def make_table(studies: Sequence[Study], options: Options, strict: bool = True) -> Table:
    """Bring the studies of any tools into one form.

    Trials that have not ended are left out. So are those that ended early, before they had all their values.

    Args:
      studies: what the tools recorded.
      options: what the caller says of them.
      strict: as in `find_parameters`.

    Raises:
      InvalidInputError: no trial has ended, all failed, or the studies do not go together.
    """
    tasks, without_task = by_task(studies, options.task)
    skipped = Counter({"no task": without_task})
    skipped["running"] = sum(run.status == "running" for study in tasks for run in study.runs)
    tasks = [replace(each, runs=tuple(run for run in each.runs if run.status != "running")) for each in tasks]
    skipped["studies without an ended trial"] = sum(not study.runs for study in tasks)
    tasks = [on_grid(study) for study in tasks if study.runs]
    source = ", ".join(dict.fromkeys(study.source for study in studies[:3]))
    if not tasks:
        raise InvalidInputError(
            "no study has a trial that has ended", where=source, fix="wait for one, or give others"
        )
    objective, objective_notes = choose_objective(tasks, options.objective, options.direction)
    endings = Counter(ending(run, objective.name) for study in tasks for run in study.runs)
    if not endings["done"]:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(endings.items()))
        raise InvalidInputError(
            f"no trial has a finite {objective.name}: {counts}",
            where=source,
            fix="name another metric by --objective, or give studies with results",
        )
    found = find_parameters(tasks, strict)
    tools = tuple(dict.fromkeys(f"{study.tool} {study.version}".strip() for study in tasks))
    metrics, curves = _names(tasks)
    column = {name: f"{_METRIC}{name}" if name in _OWN else name for name in metrics}
    rows: dict[str, list[dict[str, Any]]] = {}
    for study in tasks:
        complete = [run for run in study.runs if run.status == "done" or _is_complete(run, found.drafts)]
        skipped["ended before it had all values"] += len(study.runs) - len(complete)
        tool = f"{study.tool} {study.version}".strip()
        some = [_row(run, study.name, tool, objective.name, found.drafts, column, curves) for run in complete]
        if some:
            rows[study.name] = some
    assert objective.direction is not None
    left_out = dict(found.left_out) | {
        name: f"it cannot be declared: {reason}" for name, reason in found.undeclared.items()
    }
    draft = SpaceDraft(
        objective=column[objective.name],
        direction=objective.direction,
        parameters=tuple(replace(each, column=PARAMETER + each.name) for each in found.drafts),
        task={"column": "task"},
        trial_id="trial",
        status=_STATUS,
        metrics=(
            "seconds",
            "started",
            *(name for metric, name in column.items() if metric != objective.name),
        ),
        curves=tuple(f"{_CURVE}{name}" for name in curves),
        ignore=("tool", *(PARAMETER + name for name in left_out)),
        about=f"Trials recorded by {', '.join(tools)}.",
        notes=_notes(options, objective_notes, left_out, tools, endings),
    )
    skipped_at_all = {name: count for name, count in skipped.items() if count}
    word = "task" if options.task else "study"
    places = {study.name: Place(study.source, f"{word} {study.name}") for study in tasks}
    return Table(draft, rows, tools, skipped_at_all, found.undeclared, places)


def _names(tasks: Sequence[Study]) -> tuple[list[str], list[str]]:
    """The metrics and the curves of all trials; with a curve, its steps are one, too."""
    metrics = dict.fromkeys(name for study in tasks for run in study.runs for name in run.metrics)
    curves = dict.fromkeys(name for study in tasks for run in study.runs for name in run.curves)
    if len(metrics) > _MOST_METRICS:
        raise InvalidInputError(
            f"the trials have {len(metrics)} metrics, and at most {_MOST_METRICS} are kept",
            where=tasks[0].source,
            fix="log fewer, or give fewer studies at once",
        )
    for name in (*metrics, *curves):
        name_text(name, "a metric", tasks[0].source)
    return list(metrics), [*curves, *(["step"] if curves and "step" not in curves else [])]


def _is_complete(run: Run, drafts: Sequence[ParameterDraft]) -> bool:
    texts = {each.name: _has_texts(each) for each in drafts}
    for each in drafts:
        given = each.condition
        parent = run.values.get(given.parameter) if given else None
        active = given is None or given.holds(
            encoded(parent, texts[given.parameter]) if parent is not None else None
        )
        if active and each.name not in run.values:
            return False
    return True


def _row(
    run: Run,
    task: str,
    tool: str,
    objective: str,
    drafts: Sequence[ParameterDraft],
    column: Mapping[str, str],
    curves: Sequence[str],
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": task,
        "trial": run.trial_id,
        "status": ending(run, objective),
        "tool": tool,
        "seconds": _finite(run.seconds),
        "started": _finite(run.started),
    }
    for each in drafts:
        if each.name in run.values:
            row[PARAMETER + each.name] = encoded(run.values[each.name], _has_texts(each))
        else:
            row[PARAMETER + each.name] = None
    row |= {name: _finite(run.metrics.get(metric, math.nan)) for metric, name in column.items()}
    steps = sorted({step for curve in run.curves.values() for step in curve})
    if len(steps) > _LONGEST_CURVE:
        raise InvalidInputError(
            f"the trial {run.trial_id} of {task!r} has a curve of {len(steps)} points, and at most "
            f"{_LONGEST_CURVE} are kept",
            fix="log fewer points",
        )
    for name in curves:
        curve = dict(zip(steps, steps, strict=True)) if name == "step" else run.curves.get(name, {})
        row[_CURVE + name] = [_finite(curve.get(step, math.nan)) for step in steps]
    return row


def _has_texts(draft: ParameterDraft) -> bool:
    return bool(draft.levels) and all(isinstance(level, str) for level in draft.levels)


def _finite(value: float) -> float | None:
    """A number as JSON: NaN is null; infinity stays, and is written as a bare word that is read again."""
    return None if math.isnan(value) else value


def _notes(
    options: Options,
    objective_notes: tuple[str, ...],
    left_out: Mapping[str, str],
    tools: Sequence[str],
    endings: Mapping[str, int],
) -> dict[str, tuple[str, ...]]:
    counts = ", ".join(f"{count} {status}" for status, count in sorted(endings.items()))
    named = f"--task {options.task}" if options.task else "the name of the study"
    return {
        "": (f"Draft of a space file for trials of {', '.join(tools)}. Check the guesses and the ranges.",),
        "objective": objective_notes,
        "task": (f"The task is {named}.",),
        "trial_id": ("The tool's own id.",),
        "status": (
            f"How trials ended: {counts}. diverged: the objective is NaN or infinite. pruned: stopped early; "
            "the objective is the last value that was reported, kept as a metric. To tune on these values, "
            'move "pruned" to done.',
        ),
        "metrics": ("seconds: how long a trial took. started: when it began, in seconds since 1970, UTC.",),
        "ignore": tuple(f"{name} is left out: {reason}." for name, reason in left_out.items()),
    }
