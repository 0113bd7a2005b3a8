"""Metadata of an evaluation: what was asked for, on which data, by which code, and what it cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

import pandas as pd

from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically


class Objective(TypedDict):
    """The raw objective of the records: its name, and whether less or more of it is better."""

    name: str
    direction: Literal["minimize", "maximize"]


class Failure(TypedDict):
    """A run that was tried and gave no result, and why."""

    method: str
    task: str
    seed: int
    reason: str


class EvaluationMetadata(TypedDict):
    """Plain JSON values that name an evaluation; the keys from `total_seconds` on may be absent.

    What was asked for (`methods`, `tasks`, `seeds`, `iterations`) is written here, so that an arm without a
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
      platform: Python, JAX, device, processor: what the run says of itself.
      seconds: wall-clock seconds by step, or by step and method; a run that methods share, as priors are
        shared, is in those of each.
      started: time of the start, ISO 8601.
      finished: time of the end, ISO 8601.
      run_ids: runs that the records came from.
      command: what to type to run it again.
      total_seconds: wall-clock seconds of all methods by step, shared runs counted once; absent, not known.
      regret: `normalised` where regret is divided by the range of the task, as HPO-B's is; absent, it is not.
      runs_per_prior: how many runs on a task share what a method learned: seed r belongs to the prior of seed
        r // runs_per_prior; absent, 1.
      objective: what the column `objective` of the records is; absent, an error that is to be minimised.
      flat_tasks: training tasks whose function is flat (`hyperbo.flat_tasks`).
      failures: runs that failed; one that has its records all the same is not missing.
    """

    dataset: str
    manifest_hash: str
    preparation: str
    protocol: str
    code_version: str
    methods: dict[str, dict[str, Any]]
    tasks: list[str]
    seeds: list[int]
    iterations: int
    platform: dict[str, str]
    seconds: dict[str, float | dict[str, float]]
    started: str
    finished: str
    run_ids: list[str]
    command: str
    total_seconds: NotRequired[dict[str, float]]
    regret: NotRequired[Literal["simple", "normalised"]]
    runs_per_prior: NotRequired[int]
    objective: NotRequired[Objective]
    flat_tasks: NotRequired[list[str]]
    failures: NotRequired[list[Failure]]


_TYPES: dict[str, type] = {
    **dict.fromkeys(
        ("dataset", "manifest_hash", "preparation", "protocol", "code_version", "started", "finished"), str
    ),
    **dict.fromkeys(("methods", "platform", "seconds"), Mapping),
    **dict.fromkeys(("tasks", "seeds", "run_ids"), list),
    "iterations": int,
    "command": str,
}


_OPTIONAL_TYPES: dict[str, type] = {
    "total_seconds": Mapping,
    "regret": str,
    "runs_per_prior": int,
    "objective": Mapping,
    "flat_tasks": list,
    "failures": list,
}
_REGRETS = ("simple", "normalised")
_DIRECTIONS = ("minimize", "maximize")
_KINDS = {str: "text", Mapping: "an object", list: "a list", int: "a whole number"}


def validate_metadata(
    metadata: Mapping[str, Any], *, where: str = "evaluation metadata"
) -> EvaluationMetadata:
    """Check that a mapping is metadata of an evaluation, and return it as such.

    Raises:
      InvalidInputError: a key is missing, of another type or empty, a label repeats, or an optional key does
        not hold what it should.
    """
    missing = [key for key in _TYPES if key not in metadata]
    if missing:
        raise InvalidInputError(f"keys missing: {', '.join(missing)}", where=where)
    for key, kind in (_TYPES | _OPTIONAL_TYPES).items():
        if key in metadata and not isinstance(metadata[key], kind):
            raise InvalidInputError(f"{key} is {metadata[key]!r}", where=where, fix=f"give {_KINDS[kind]}")
    for key in ("methods", "tasks", "seeds"):
        if not metadata[key]:
            raise InvalidInputError(f"{key} is empty", where=where, fix="name at least one")
        if len(set(metadata[key])) != len(metadata[key]):
            raise InvalidInputError(f"{key} repeat: {metadata[key]}", where=where)
    if metadata["iterations"] < 1:
        raise InvalidInputError(f"iterations is {metadata['iterations']}", where=where, fix="at least 1")
    _validate_seconds(metadata, where)
    _validate_optional(metadata, where)
    return cast(EvaluationMetadata, metadata)


def _validate_seconds(metadata: Mapping[str, Any], where: str) -> None:
    of_methods = [each for each in metadata["seconds"].values() if isinstance(each, Mapping)]
    alone = [each for each in metadata["seconds"].values() if not isinstance(each, Mapping)]
    values = [value for each in of_methods for value in each.values()]
    for value in (*alone, *values, *metadata.get("total_seconds", {}).values()):
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise InvalidInputError(f"seconds hold {value!r}", where=where, fix="give finite numbers")


def _validate_optional(metadata: Mapping[str, Any], where: str) -> None:
    if metadata.get("regret", _REGRETS[0]) not in _REGRETS:
        raise InvalidInputError(
            f"regret is {metadata['regret']!r}", where=where, fix=f"give {' or '.join(_REGRETS)}"
        )
    if metadata.get("runs_per_prior", 1) < 1:
        raise InvalidInputError(
            f"runs_per_prior is {metadata['runs_per_prior']}", where=where, fix="at least 1"
        )
    objective = metadata.get("objective", {"name": "", "direction": _DIRECTIONS[0]})
    if not isinstance(objective.get("name"), str) or objective.get("direction") not in _DIRECTIONS:
        raise InvalidInputError(
            f"objective is {objective!r}",
            where=where,
            fix=f"give its name, and as its direction {' or '.join(_DIRECTIONS)}",
        )
    for task in metadata.get("flat_tasks", ()):
        if not isinstance(task, str):
            raise InvalidInputError(f"flat_tasks hold {task!r}", where=where, fix="give names of tasks")
    for failure in metadata.get("failures", ()):
        if not isinstance(failure, Mapping) or set(failure) != set(Failure.__annotations__):
            raise InvalidInputError(
                f"a failure is {failure!r}", where=where, fix=f"give {', '.join(Failure.__annotations__)}"
            )
        for key, known in (("method", "methods"), ("task", "tasks"), ("seed", "seeds")):
            if failure[key] not in list(metadata[known]):
                raise InvalidInputError(
                    f"a failure has the {key} {failure[key]!r}", where=where, fix=f"use one of the {known}"
                )
        if not isinstance(failure["reason"], str) or not failure["reason"]:
            raise InvalidInputError(
                f"a failure has the reason {failure['reason']!r}", where=where, fix="give text"
            )


def run_unit(metadata: EvaluationMetadata) -> str:
    """What one of the metadata's `seeds` is to a reader.

    Returns:
      `seed`, or `run` where several of them share a prior, so that they are no seeds of the methods.
    """
    return "seed" if metadata.get("runs_per_prior", 1) == 1 else "run"


def minimised(metadata: EvaluationMetadata) -> bool:
    """Whether less of the raw objective is better: so it is unless the metadata say otherwise."""
    return "objective" not in metadata or metadata["objective"]["direction"] == "minimize"


def check_records_belong(records: pd.DataFrame, metadata: EvaluationMetadata) -> None:
    """Check that metadata names every method, task, seed and iteration of the run records.

    Raises:
      InvalidInputError: names what the metadata does not know of.
    """
    for column, known in (
        ("method", metadata["methods"]),
        ("task", metadata["tasks"]),
        ("seed", metadata["seeds"]),
    ):
        unknown = sorted(set(records[column].unique().tolist()) - set(known))
        if unknown:
            raise InvalidInputError(
                f"{column} not named in the metadata: {', '.join(map(str, unknown))}",
                where="run records",
                fix="report records together with the metadata of the evaluation that made them",
            )
    last = int(records["iteration"].max())
    if last > metadata["iterations"]:
        raise InvalidInputError(
            f"iteration {last} is beyond the {metadata['iterations']} of the metadata", where="run records"
        )


def write_metadata(metadata: Mapping[str, Any], path: Path) -> None:
    """Check metadata and write it as JSON, whole or not at all.

    Raises:
      InvalidInputError: as `validate_metadata`, or a value that JSON cannot hold.
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
      InvalidInputError: the file cannot be read as JSON, or as `validate_metadata`.
    """
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"metadata cannot be read: {error}", where=str(path)) from error
    if not isinstance(metadata, dict):
        raise InvalidInputError("metadata is not a JSON object", where=str(path))
    return validate_metadata(metadata, where=str(path))
