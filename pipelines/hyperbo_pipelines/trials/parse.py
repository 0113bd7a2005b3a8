"""ParseTrialFiles: rows of anyone's trials become trials or rejects."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Value
from hyperbo.data.trial import Status, Trial
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.build import with_rejects
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.curate.fields import curve, number, shown, text
from hyperbo_pipelines.trials.description import NameSource, StatusColumn, TrialsDescription
from hyperbo_pipelines.trials.rows import read_rows, suffix_of

_LARGEST_PHASE = 2**31 - 1
_KEPT_AS = re.compile(r"~[0-9]+$")
# What stands for true and false in JSON and in the cells of CSV files; to Python, 1 equals True.
_TRUTHS: dict[Any, bool] = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0", True), True),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0", False), False),
}


class ParseTrialFiles(beam.PTransform):
    """PCollection[RawFile] -> (PCollection[Trial], PCollection[Reject]).

    Rows that the description skips become neither.

    Args:
      description: the meaning of the columns.
      origin: how the trials were made; written into each.
    """

    def __init__(self, description: TrialsDescription, origin: str) -> None:
        super().__init__()
        self._description, self._origin = description, origin

    def expand(self, input_or_inputs: Any) -> Any:
        """Spread the files over the workers, which read and parse them."""
        files = input_or_inputs | "Spread" >> beam.Reshuffle()
        return with_rejects(files, "ParseFile", parse_file, self._description, self._origin)


def parse_file(file: RawFile, description: TrialsDescription, origin: str) -> Iterator[Trial | Reject]:
    """The trials and rejects of a file, in the order of its rows; rows that are skipped become neither."""
    status = description.status
    columns = description.columns
    accepted = columns.keys()
    for place, row in read_rows(file.path, columns):
        try:
            if isinstance(row, InvalidInputError):
                raise row
            if status and status.skips(row):
                continue
            if row.keys() != accepted:
                description.check_columns(row, of_row=True)
                accepted = row.keys()
            yield parse_trial(row, file, place, description, origin)
        except InvalidInputError as error:
            yield Reject(file.path.name, place, error.what)


def parse_trial(
    row: Mapping[str, Any], file: RawFile, place: int, description: TrialsDescription, origin: str
) -> Trial:
    """Make a trial of one row, of which `place` is the line or the number.

    The trial's id is `<task>/<id within the task>`. Slashes in the task's name are replaced: otherwise `b/c`
    of the task `a` would equal `c` of the task `a/b`. A null, an empty cell and a NaN are all NaN in metrics
    and curves. A trial that is done may lack a finite objective, a diverged one may have it: both are kept.

    Raises:
      InvalidInputError: a column has a wrong value, or the objective has no warped value.
    """
    source = f"{file.path.name}:{place}"
    task = _name(description.task, row, file.path)
    hyperparameters = _hyperparameters(row, description)
    identifier = _identifier(row, description.trial_id) if description.trial_id else source
    metrics = {name: number(row[name], name) for name in description.metric_names}
    objective = metrics[description.objective]
    status = _status(description.status, row, objective)
    if status == "done":
        _check_warpable(objective, description)
    return Trial(
        task=task,
        task_dataset=_name(description.task_dataset, row, file.path) if description.task_dataset else task,
        trial_id=f"{_without_slashes(task)}/{identifier}",
        split=file.split,
        phase=_phase(row, description.phase) if description.phase else file.phase,
        origin=origin,
        source=source,
        status=status,
        hyperparameters=hyperparameters,
        input_id=description.space.input_id(hyperparameters),
        metrics=metrics,
        curves={name: curve(row[name], name) for name in description.curves if row[name] is not None},
    )


def _name(source: NameSource, row: Mapping[str, Any], path: Path) -> str:
    if source.file_name:
        # A version keeps the next file of a name as `name~2`: it is of the same task.
        return _KEPT_AS.sub("", path.name.removesuffix(suffix_of(path)))
    return _identifier(row, source.column) if source.column else source.name


def _without_slashes(task: str) -> str:
    """A task's name without slashes, for an id; different names stay different.

    >>> _without_slashes("resnet-cifar"), _without_slashes("cifar/resnet 50%")
    ('resnet-cifar', 'cifar%2Fresnet 50%25')
    """
    return task.replace("%", "%25").replace("/", "%2F")


def _identifier(row: Mapping[str, Any], column: str) -> str:
    """A text, or a whole number as text."""
    return str(row[column]) if type(row[column]) is int else text(row, column)


def _hyperparameters(row: Mapping[str, Any], description: TrialsDescription) -> dict[str, Value]:
    """The values of the active parameters; a value that is recorded of an inactive one had no effect."""
    space = description.space
    values: dict[str, Value] = {}
    for place in space.parents_first:
        each = space.parameters[place]
        try:
            is_active = space.is_active(each.name, values)
        except InvalidInputError:
            # The parent's value is none of its own, which is said when the trial is checked.
            continue
        if not is_active:
            continue
        column = description.parameter_columns[each.name]
        value = row.get(column)
        if value is None or value == "":
            active = f", although it is active: {each.condition}" if each.condition else ""
            raise InvalidInputError(f"{column} has no value{active}")
        values[each.name] = _value(each, value, column)
    return {name: values[name] for name in space.names if name in values}


def _value(parameter: Parameter | Choice, value: Any, column: str) -> Value:
    if isinstance(parameter, Parameter) or parameter.is_number:
        if isinstance(value, str):
            raise InvalidInputError(
                f"{column} is {shown(value)}, not a number; the space file can declare a choice of texts"
            )
        found = number(value, column)
        # A column of CSV has no whole numbers of its own.
        is_whole = (isinstance(parameter, Choice) or parameter.integer) and found.is_integer()
        return int(found) if is_whole else found
    if parameter.is_text:
        return text({column: value}, column)
    truth = _TRUTHS.get(value) if isinstance(value, str | bool | int | float) else None
    if truth is None:
        raise InvalidInputError(f"{column} is {shown(value)}, not true or false")
    return truth


def _status(status: StatusColumn | None, row: Mapping[str, Any], objective: float) -> Status:
    if status is None:
        return "done" if math.isfinite(objective) else "diverged"
    value = _identifier(row, status.column)
    if value not in status.meanings:
        raise InvalidInputError(
            f"{status.column} is {shown(value)}, which no list of status names: "
            f"{', '.join(map(repr, status.meanings))}"
        )
    return status.meanings[value]


def _phase(row: Mapping[str, Any], column: str) -> int:
    value = number(row[column], column)
    if not (value.is_integer() and 0 <= value <= _LARGEST_PHASE):
        raise InvalidInputError(f"{column} is {shown(row[column])}, not a phase: a whole number from 0")
    return int(value)


def _check_warpable(objective: float, description: TrialsDescription) -> None:
    if not math.isfinite(objective):
        return
    with np.errstate(all="ignore"):
        (y,) = output_warping(description.warping).warp(np.array([objective]))
    if not math.isfinite(y):
        raise InvalidInputError(
            f"{description.objective} = {objective!r} has no value under the warping {description.warping}"
        )
