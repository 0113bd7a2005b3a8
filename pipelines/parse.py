"""ParseTrials: lines of raw files become trials; a line that cannot becomes a reject."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from types import NoneType
from typing import Any

import apache_beam as beam
from apache_beam import pvalue

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import SearchSpace
from hyperbo.trial import STATUSES, Status, Trial
from pipelines.raw_files import read_lines
from pipelines.records import RawFile, Reject

# Where the release keeps each parameter of the PD1 search space. Its momentum is beta, not 1 - beta.
HYPERPARAMETER_COLUMNS = {
    "learning_rate": "hps.lr_hparams.initial_value",
    "power": "hps.lr_hparams.power",
    "momentum": "hps.opt_hparams.momentum",
    "decay_steps_factor": "hps.lr_hparams.decay_steps_factor",
}
_MEASURED = (
    "train_cost",
    *(f"{part}/{metric}" for part in ("train", "valid", "test") for metric in ("error_rate", "ce_loss")),
)
METRICS = tuple(f"best_{name}{suffix}" for name in _MEASURED for suffix in ("", "_index", "_step"))
CURVES = ("global_step", "epoch", "eval_time", "learning_rate", *_MEASURED)


class ParseTrials(beam.PTransform):
    """PCollection[RawFile] -> (PCollection[Trial], PCollection[Reject]).

    Args:
      space: search space of the trials.
      origin: how the trials came about, written into each.
    """

    def __init__(self, space: SearchSpace, origin: str) -> None:
        super().__init__()
        self._space, self._origin = space, origin

    def expand(self, input_or_inputs: Any) -> Any:
        """Read lines, spread them over the workers, parse each."""
        parsed = (
            input_or_inputs
            | "ReadLines" >> beam.FlatMap(_lines)
            | "Spread" >> beam.Reshuffle()
            | "ParseLine"
            >> beam.FlatMap(_parse_line, self._space, self._origin).with_outputs("rejects", main="trials")
        )
        return parsed.trials, parsed.rejects


def _lines(file: RawFile) -> Iterable[tuple[RawFile, int, bytes | InvalidInputError]]:
    number = 0
    try:
        for number, line in read_lines(file.path):
            yield file, number, line
    except InvalidInputError as error:
        if number == 0:
            raise  # Nothing of the file can be read: that is no matter of single rows.
        yield file, number + 1, error


def _parse_line(
    line: tuple[RawFile, int, bytes | InvalidInputError], space: SearchSpace, origin: str
) -> Iterable[Any]:
    file, number, content = line
    try:
        if isinstance(content, InvalidInputError):
            raise content
        yield parse_trial(content, file, number, space, origin)
    except InvalidInputError as error:
        yield pvalue.TaggedOutput("rejects", Reject(file.path.name, number, error.what))


def parse_trial(content: bytes, file: RawFile, number: int, space: SearchSpace, origin: str) -> Trial:
    """Parse one row of the PD1 release's layout.

    The task is named `<dataset>-<variant>-<batch size>` after `study_group`. A null, a bare NaN and an absent
    metric are all NaN. A metric and a diverged status may both be present: both are kept. Columns not named
    in this module stay in the raw file.

    Raises:
      InvalidInputError: the row is not a JSON object, or a column is missing or has the wrong type.
    """
    row = _json_object(content)
    study = _text(row, "study_group").split(",")
    if len(study) != 5 or not all(study):
        raise InvalidInputError(
            f"study_group is {row['study_group']!r}, not shortname,dataset,model,variant,batch_size"
        )
    _, dataset, _, variant, batch = study
    if not (batch.isascii() and batch.isdigit() and len(batch) <= 12 and int(batch) > 0):
        raise InvalidInputError(f"batch size in study_group is {batch!r}, not a positive whole number")
    hyperparameters = {name: _required(row, HYPERPARAMETER_COLUMNS[name]) for name in space.names}
    return Trial(
        task=f"{dataset}-{variant}-{batch}",
        task_dataset=dataset,
        model=variant,
        batch_size=int(batch),
        trial_id=_text(row, "trial_dir"),
        split=file.split,  # pyright: ignore[reportArgumentType] - one of two, by the name of its file
        phase=file.phase,
        origin=origin,
        source=f"{file.path.name}:{number}",
        status=_status(row),
        hyperparameters=hyperparameters,
        input_id=space.input_id(hyperparameters),
        metrics={name: _number(row.get(name), name) for name in METRICS},
        curves={name: _curve(row[name], name) for name in CURVES if row.get(name)},
    )


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        row = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InvalidInputError(f"is a JSON {type(row).__name__}, not an object")
    return row


def _text(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(
            f"{column} is {_shown(value)}, not a text" if column in row else f"{column} is missing"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:  # A lone surrogate: JSON can spell it, no file format can store it.
        raise InvalidInputError(f"{column} is not text: {error}") from error
    return value


def _status(row: dict[str, Any]) -> Status:
    value = _text(row, "status")
    for status in STATUSES:
        if value == status:
            return status
    raise InvalidInputError(f"status is {_shown(value)}, not one of {', '.join(STATUSES)}")


def _required(row: dict[str, Any], column: str) -> float:
    if row.get(column) is None:
        raise InvalidInputError(f"{column} is {'null' if column in row else 'missing'}")
    return _number(row[column], column)


def _number(value: Any, column: str) -> float:
    if value is None:
        return math.nan
    # bool is an int to Python, and no number here.
    if type(value) not in (int, float):
        raise InvalidInputError(f"{column} is {_shown(value)}, not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidInputError(f"{column} is too large for a float64") from error


def _curve(values: Any, column: str) -> tuple[float, ...]:
    if not isinstance(values, list):
        raise InvalidInputError(f"{column} is {_shown(values)}, not an array")
    types = set(map(type, values))
    if types == {float}:
        return tuple(values)
    if not types <= {int, float, NoneType}:
        wrong = next(value for value in values if type(value) not in (int, float, NoneType))
        raise InvalidInputError(f"{column} has the entry {_shown(wrong)}, not a number")
    return tuple(_number(value, column) for value in values)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
