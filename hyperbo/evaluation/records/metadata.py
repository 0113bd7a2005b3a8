"""Metadata of an evaluation: what was asked for, on which data, by which code, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,  # pydantic asks for this TypedDict before Python 3.12
)

import pandas as pd
from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveInt, StringConstraints
from typing_extensions import TypedDict

from hyperbo.errors import InvalidInputError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.validation import distinct, field_path, validated

_Seconds = dict[str, NonNegativeFloat]
_Names = Annotated[list[str], Field(min_length=1), AfterValidator(distinct)]


class Objective(TypedDict):
    """The raw objective of the records: its name, and whether less or more of it is better."""

    name: str
    direction: Literal["minimize", "maximize"]


class Failure(TypedDict):
    """A run that was tried and gave no result, and why."""

    method: str
    task: str
    seed: int
    reason: Annotated[str, StringConstraints(min_length=1)]


class EvaluationMetadata(TypedDict):
    """Plain JSON values that describe an evaluation; the keys from `total_seconds` on may be absent.

    `methods`, `tasks`, `seeds` and `iterations` are those that were asked for, so that an arm without a
    single record is still known to be missing.

    Attributes:
      dataset: dataset and version, `name/config:version`.
      manifest_hash: identity of the version, a hash over its records.
      preparation: named reading of the version.
      protocol: how tasks were held out and candidates offered.
      code_version: version of the code that ran.
      methods: configuration by method; the first is the one that the report is about.
      tasks: test tasks.
      seeds: seeds of the methods.
      iterations: iterations of each run.
      platform: Python, JAX, device and processor of the runs.
      seconds: wall-clock seconds by step, or by step and method; a run that methods share, as priors are
        shared, is in those of each.
      started: time of the start, ISO 8601.
      finished: time of the end, ISO 8601.
      run_ids: runs that the records came from.
      command: what to type to run it again.
      total_seconds: wall-clock seconds of all methods by step, shared runs counted once; absent: not known.
      regret: `normalised` where regret is divided by the range of the task, as HPO-B's is; absent: `simple`.
      runs_per_prior: how many runs on a task share what a method learned: seed r belongs to the prior of seed
        r // runs_per_prior; absent: 1.
      objective: what the column `objective` of the records is; absent: an error that is to be minimised.
      flat_tasks: training tasks whose function is flat (`hyperbo.data.subsets`).
      summaries: by the name of a method of one's own, what it says of itself in one line.
      failures: runs that failed; a run that failed and has records was repeated, and is not missing.
    """

    dataset: str
    manifest_hash: str
    preparation: str
    protocol: str
    code_version: str
    methods: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    tasks: _Names
    seeds: Annotated[list[int], Field(min_length=1), AfterValidator(distinct)]
    iterations: PositiveInt
    platform: dict[str, str]
    seconds: dict[str, NonNegativeFloat | _Seconds]
    started: str
    finished: str
    run_ids: list[str]
    command: str
    total_seconds: NotRequired[_Seconds]
    regret: NotRequired[Literal["simple", "normalised"]]
    runs_per_prior: NotRequired[PositiveInt]
    objective: NotRequired[Objective]
    flat_tasks: NotRequired[list[str]]
    summaries: NotRequired[dict[str, str]]
    failures: NotRequired[list[Failure]]


def validate_metadata(metadata: Any, *, where: str = "evaluation metadata") -> EvaluationMetadata:
    """Check that plain JSON values are the metadata of an evaluation, and return them as such.

    Raises:
      InvalidInputError: a key is missing, unknown, or does not hold what it should, or a failure is of a
        method, task or seed that the metadata do not name.
    """
    checked = validated(EvaluationMetadata, metadata, where)
    for number, failure in enumerate(checked.get("failures", ())):
        for key, known in (("method", "methods"), ("task", "tasks"), ("seed", "seeds")):
            if failure[key] not in checked[known]:
                raise InvalidInputError(
                    f"{failure[key]!r} is not one of the {known}",
                    where=f"{where}: {field_path('failures', number, key)}",
                )
    return metadata


def method_of(metadata: EvaluationMetadata, label: str) -> str:
    """The name of the method behind a label: its own, or the label where the metadata name no method."""
    return str(metadata["methods"][label].get("method", label))


def run_unit(metadata: EvaluationMetadata) -> str:
    """What one of the `seeds` is to a reader: `run` where several of them share a prior, else `seed`."""
    return "seed" if metadata.get("runs_per_prior", 1) == 1 else "run"


def minimised(metadata: EvaluationMetadata) -> bool:
    """Whether less of the raw objective is better: so it is unless the metadata say otherwise."""
    return "objective" not in metadata or metadata["objective"]["direction"] == "minimize"


def check_records_belong(records: pd.DataFrame, metadata: EvaluationMetadata) -> None:
    """Check that metadata names every method, task, seed and iteration of the run records.

    Raises:
      InvalidInputError: the records have something that the metadata do not name.
    """
    methods, tasks, seeds = metadata["methods"], metadata["tasks"], metadata["seeds"]
    check_named(records, "run records", method=methods, task=tasks, seed=seeds)
    last = int(records["iteration"].max())
    if last > metadata["iterations"]:
        raise InvalidInputError(
            f"iteration {last} is beyond the {metadata['iterations']} of the metadata", where="run records"
        )


def check_named(frame: pd.DataFrame, where: str, **known: Collection[Any]) -> None:
    """Check that the metadata name all values of these columns of a frame."""
    for column, names in known.items():
        unknown = sorted(set(frame[column].unique().tolist()) - set(names))
        if unknown:
            raise InvalidInputError(
                f"{column} not named in the metadata: {', '.join(map(str, unknown))}",
                where=where,
                fix="report records together with the metadata of the evaluation that made them",
            )


def write_metadata(metadata: Mapping[str, Any], path: Path) -> None:
    """Check metadata and write it as JSON, whole or not at all.

    Raises:
      InvalidInputError: the values are not metadata of an evaluation, or JSON cannot hold one of them.
    """
    validate_metadata(metadata)
    try:
        text = json.dumps(metadata, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"metadata is not plain JSON: {error}", where=str(path)) from error
    write_atomically(path, text.encode() + b"\n")


def read_metadata(path: Path) -> EvaluationMetadata:
    """Read what `write_metadata` wrote.

    Raises:
      InvalidInputError: the file cannot be read as JSON, or does not hold metadata of an evaluation.
    """
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"metadata cannot be read: {error}", where=str(path)) from error
    return validate_metadata(metadata, where=str(path))
