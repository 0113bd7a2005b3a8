"""ParseTrials: lines of raw files become trials or rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import STATUSES, Status, Trial
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.build import with_rejects
from hyperbo_pipelines.curate.elements import Chunk, RawFile, Reject
from hyperbo_pipelines.curate.fields import curve, json_object, number, required_number, shown, text
from hyperbo_pipelines.curate.raw_files import read_lines
from hyperbo_pipelines.pd1.layout import CURVES, HYPERPARAMETER_COLUMNS, METRICS


class ParseTrials(beam.PTransform):
    """PCollection[RawFile] -> (PCollection[Trial], PCollection[Reject]).

    Args:
      space: search space of the trials.
      origin: how the trials were made; written into each trial without a column `origin`.
      curves: names of the curves to keep.
    """

    def __init__(self, space: SearchSpace, origin: str, curves: Sequence[str] = CURVES) -> None:
        super().__init__()
        self._space, self._origin, self._curves = space, origin, tuple(curves)

    def expand(self, input_or_inputs: Any) -> Any:
        """Spread the chunks of the files over the workers, which read and parse them."""
        chunks = (
            input_or_inputs
            | "Chunks" >> beam.FlatMap(lambda file: [(file, chunk) for chunk in file.chunks or (None,)])
            | "Spread" >> beam.Reshuffle()
        )
        return with_rejects(chunks, "ParseChunk", _parse_chunk, self._space, self._origin, self._curves)


def _parse_chunk(
    part: tuple[RawFile, Chunk | None], space: SearchSpace, origin: str, curves: tuple[str, ...]
) -> Iterator[Trial | Reject]:
    file, chunk = part
    for line, content in read_lines(file.path, chunk):
        try:
            yield parse_trial(content, file, line, space, origin, curves)
        except InvalidInputError as error:
            yield Reject(file.path.name, line, error.what)


def parse_trial(
    content: bytes,
    file: RawFile,
    line: int,
    space: SearchSpace,
    origin: str,
    curves: Sequence[str] = CURVES,
) -> Trial:
    """Parse one row of the PD1 release's layout: a line of a file, numbered from 1.

    The task is named `<dataset>-<variant>-<batch size>` after `study_group`. A null, a bare NaN and an absent
    metric are all NaN. A diverged trial may have metrics: they are kept. Other columns are ignored. `origin`
    says how the trial was made if the row does not; `curves` are the names of the curves to keep.

    Raises:
      InvalidInputError: the row is not a JSON object, or a column is missing or has the wrong type.
    """
    row = json_object(content)
    study = text(row, "study_group").split(",")
    if len(study) != 5 or not all(study):
        raise InvalidInputError(
            f"study_group is {row['study_group']!r}, not shortname,dataset,model,variant,batch_size"
        )
    _, dataset, _, variant, batch = study
    if not (batch.isascii() and batch.isdigit() and len(batch) <= 12 and int(batch) > 0):
        raise InvalidInputError(f"batch size in study_group is {batch!r}, not a positive whole number")
    hyperparameters = {name: required_number(row, HYPERPARAMETER_COLUMNS[name]) for name in space.names}
    return Trial(
        task=f"{dataset}-{variant}-{batch}",
        task_dataset=dataset,
        model=variant,
        batch_size=int(batch),
        trial_id=text(row, "trial_dir"),
        split=file.split,
        phase=file.phase,
        origin=text(row, "origin") if "origin" in row else origin,
        source=f"{file.path.name}:{line}",
        status=_status(row),
        hyperparameters=hyperparameters,
        input_id=space.input_id(hyperparameters),
        metrics={name: number(row.get(name), name) for name in METRICS},
        curves={name: curve(row[name], name) for name in curves if row.get(name)},
    )


def _status(row: dict[str, Any]) -> Status:
    value = text(row, "status")
    for status in STATUSES:
        if value == status:
            return status
    raise InvalidInputError(f"status is {shown(value)}, not one of {', '.join(STATUSES)}")
