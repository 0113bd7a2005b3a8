"""Drafting a space file for rows: what each column of a table is, guessed by its name and its values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.histories.conditions import condition_of
from hyperbo_pipelines.histories.draft import ParameterDraft, SpaceDraft
from hyperbo_pipelines.histories.guess import MOST_LEVELS, distinct, guess_parameter
from hyperbo_pipelines.histories.objective import guess_direction, guess_objective, is_result
from hyperbo_pipelines.histories.statuses import guess_statuses
from hyperbo_pipelines.histories.table import Options
from hyperbo_pipelines.trials.rows import column_names, no_file, read_rows, suffix_of

MOST_ROWS = 200_000
_TASK = ("task", "task_name", "study", "study_name", "problem", "benchmark", "experiment", "dataset")
_DATASET = ("task_dataset", "dataset", "dataset_name", "data")
_TRIAL = ("trial_id", "trial", "run_id", "run", "number", "trial_number", "id", "uuid", "name")
_STATUS = ("status", "state", "trial_status", "st_status")
_PREFIX = re.compile(r"(params?|parameters|config|hp|hparams|hyperparameters)[_./:]", re.IGNORECASE)
_TIME = re.compile(r"(^|[^a-z])(time|date|datetime|timestamp|seconds|duration|runtime|elapsed|epochs?|steps?|"
                   r"iterations?|started|finished|ended|created)([^a-z]|$)", re.IGNORECASE)  # fmt: skip
_TRUTH = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


@dataclass
class _Left:
    """The columns that are not used yet, and the comments on those that are."""

    values: dict[str, list[Any]]
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, names: Sequence[str]) -> str:
        """The first of the names that is left, whatever its case; empty if none is."""
        by_name = {name.lower(): name for name in reversed(self.values)}
        found = next((by_name[name] for name in names if name in by_name), "")
        # A column may have no name: pandas writes its index so.
        if found:
            self.values.pop(found)
        return found


def draft_of_rows(paths: Sequence[Path], options: Options) -> SpaceDraft:
    """Draft the space file of files of rows.

    Args:
      paths: JSON lines, CSV or Parquet.
      options: what the caller says; `task` is here the name of a column.

    Returns:
      The draft, with a comment on each guess. Columns of which nothing is known are ignored.

    Raises:
      InvalidInputError: a file cannot be read or has no rows; the objective or its direction is not clear; a
        column has values of mixed types; or there is no hyperparameter.
    """
    rows = [row for path in paths for row in _rows(path)]
    if not rows:
        raise _without_rows(paths)
    where = ", ".join(path.name for path in paths[:3])
    names = dict.fromkeys(name for row in rows for name in row)
    left = _Left({name: [_plain(row.get(name)) for row in rows] for name in names})
    curves = [name for name, values in left.values.items() if any(isinstance(each, list) for each in values)]
    for name in curves:
        left.values.pop(name)
    task, dataset, trial_id, status = _take_names(left, rows, options)
    objective = _take_objective(left, options, where)
    parameters, columns, undeclared = _take_parameters(left, rows, where)
    metrics, ignored = _sort_rest(left)
    direction = options.direction or guess_direction(objective, where)
    _comment(left, objective, curves, ignored, options)
    obstacles = (
        f"{name!r} is ignored, because it cannot be declared: {why}." for name, why in undeclared.items()
    )
    left.notes["ignore"] = (*left.notes["ignore"], *obstacles)
    for name, note in (("task", task[1]), ("trial_id", "A guess by the name.") if trial_id else ("", "")):
        left.notes[name] = (*left.notes.get(name, ()), note) if note else left.notes.get(name, ())
    left.notes[""] = (
        f"Draft of a space file for {where}{' and more' if len(paths) > 3 else ''}: {len(rows)} rows were "
        "read. Check the guesses and the ranges.",
    )
    return SpaceDraft(
        objective,
        direction,
        tuple(replace(each, column=columns[each.name]) for each in parameters),
        task[0],
        {"column": dataset} if dataset else None,
        trial_id,
        status,
        tuple(metrics),
        tuple(curves),
        (*ignored, *undeclared),
        notes=left.notes,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise no_file(path)
    if not suffix_of(path):
        raise InvalidInputError("not a file of rows", where=str(path), fix="give JSON lines, CSV or Parquet")
    names = column_names(path) or ()
    read = read_rows(path, dict.fromkeys(names, "real"))
    return [row for _, row in islice(read, MOST_ROWS) if not isinstance(row, InvalidInputError)]


def _without_rows(paths: Sequence[Path]) -> InvalidInputError:
    """The error of files in which no row can be read: the reason of the first."""
    for path in paths:
        for place, row in read_rows(path, dict.fromkeys(column_names(path) or (), "real")):
            if isinstance(row, InvalidInputError):
                return InvalidInputError(
                    row.what, where=f"{path}:{place}", fix="no row can be read: correct it"
                )
    return InvalidInputError("there is no trial", where=str(paths[0]), fix="give files with rows")


def _plain(value: Any) -> Any:
    """A cell; None where it is empty or NaN; true and false of texts."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        return [value]
    return _TRUTH.get(value, value) if isinstance(value, str) else value


def _take_names(
    left: _Left, rows: Sequence[Mapping[str, Any]], options: Options
) -> tuple[tuple[dict[str, Any], str], str, str, Mapping[str, Any] | None]:
    task = left.take([options.task.lower()] if options.task else _TASK)
    if options.task and not task:
        raise InvalidInputError(
            f"there is no column {options.task!r}", where="--task", fix="name another one"
        )
    dataset = left.take(_DATASET) if task else ""
    said = "The column that --task names." if options.task else "A guess by the name."
    source = (
        ({"column": task}, said)
        if task
        else (
            {"file_name": True},
            "Guess: no column is called task or study, so the file's name is the task.",
        )
    )
    trial_id = ""
    for name in _TRIAL:
        column = next((each for each in left.values if each.lower() == name), "")
        pairs = [(row.get(task), row.get(column)) for row in rows]
        is_id = all(isinstance(each, str | int | float) for _, each in pairs)
        if column and is_id and (len(set(pairs)) == len(pairs) or not task):
            trial_id = left.take([name])
            break
    status_column = left.take(_STATUS)
    status = None
    if status_column:
        seen = [str(row[status_column]) for row in rows if row.get(status_column) is not None]
        status, left.notes["status"] = guess_statuses(status_column, seen)
    return source, dataset, trial_id, status


def _take_objective(left: _Left, options: Options, where: str) -> str:
    numeric = [name for name, values in left.values.items() if _is_number_column(values)]
    if options.objective and options.objective not in left.values:
        raise InvalidInputError(
            f"there is no column {options.objective!r}", where="--objective", fix="name another one"
        )
    among = [name for name in numeric if not _PREFIX.match(name)]
    objective = options.objective or guess_objective(among, where)
    marks = distinct(each for each in left.values.pop(objective) if isinstance(each, str))
    notes = ["Guess: the name says so."] if not options.objective else []
    if marks:
        notes.append(
            f"{', '.join(map(shown, marks[:5]))} are no numbers: these rows will be rejected. Write an empty "
            "cell or null, for a trial that diverged."
        )
    left.notes["objective"] = tuple(notes)
    return objective


def _is_number_column(values: Sequence[Any]) -> bool:
    """Whether most of the values are numbers: a few marks of failure may be among them."""
    numbers = sum(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
    return numbers > 0 and 2 * numbers > sum(each is not None for each in values)


def _take_parameters(
    left: _Left, rows: Sequence[Mapping[str, Any]], where: str
) -> tuple[list[ParameterDraft], dict[str, str], dict[str, str]]:
    """The hyperparameters, their columns, and why no space file can declare some other columns."""
    prefixed = [name for name in left.values if _PREFIX.match(name) and _PREFIX.sub("", name, count=1)]
    chosen = prefixed or [
        name
        for name, values in left.values.items()
        if name and not is_result(name) and not _TIME.search(name) and not _names_trials(values)
    ]
    drafts, columns, undeclared = [], {}, {}
    for column in chosen:
        values = [each for each in left.values[column] if each is not None]
        if not values:
            continue
        left.values.pop(column)
        name = _PREFIX.sub("", column, count=1) if prefixed else column
        draft = guess_parameter(name, values, where)
        if obstacle := draft.obstacle():
            undeclared[column] = obstacle
            continue
        columns[name] = column
        drafts.append(draft)
    if not drafts:
        raise InvalidInputError(
            "no column looks like a hyperparameter", where=where, fix="write the space file by hand"
        )
    trials = [
        {
            name: _plain(row.get(column))
            for name, column in columns.items()
            if _plain(row.get(column)) is not None
        }
        for row in rows
    ]
    return [_with_condition(draft, drafts, trials) for draft in drafts], columns, undeclared


def _with_condition(
    draft: ParameterDraft, others: Sequence[ParameterDraft], trials: Sequence[Mapping[str, Any]]
) -> ParameterDraft:
    lacking = sum(draft.name not in trial for trial in trials)
    if not lacking:
        return draft
    found = condition_of(draft.name, others, trials)
    note = (
        f"Guess: conditional. {lacking} of {len(trials)} trials have no value, and {found.parameter} says "
        "which."
        if found
        else f"{lacking} of {len(trials)} trials have no value, and no other column says which: they will be "
        "rejected."
    )
    return replace(draft, condition=found, notes=(*draft.notes, note))


def _names_trials(values: Sequence[Any]) -> bool:
    texts = [each for each in values if isinstance(each, str)]
    levels = len(set(texts))
    return levels > MOST_LEVELS or (len(texts) > 4 and levels == len(texts))


def _sort_rest(left: _Left) -> tuple[list[str], list[str]]:
    metrics, ignored = [], []
    for name, values in left.values.items():
        is_metric = name and all(
            isinstance(each, int | float) and not isinstance(each, bool)
            for each in values
            if each is not None
        )
        (metrics if is_metric and any(each is not None for each in values) else ignored).append(name)
    return metrics, ignored


def _comment(
    left: _Left, objective: str, curves: Sequence[str], ignored: Sequence[str], options: Options
) -> None:
    if not options.direction:
        left.notes["direction"] = (f"Guess: the name {objective!r} says so.",)
    left.notes["metrics"] = ("Other columns of numbers, in the units in which they are recorded.",)
    if curves:
        left.notes["curves"] = ("Columns of lists: values along training.",)
    notes = []
    for name in ignored:
        values = distinct(each for each in left.values[name] if each is not None)
        what = f"{len(values)} values such as {shown(values[0])}" if values else "no value in any row"
        notes.append(f"{name!r} is ignored: {what}.")
    left.notes["ignore"] = tuple(notes)
