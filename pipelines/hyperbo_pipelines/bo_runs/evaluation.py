"""The files of an evaluation, checked before any pipeline runs, and the columns of their records."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.metadata import EvaluationMetadata, check_records_belong, read_metadata
from hyperbo.evaluation.records.runs import read_records
from hyperbo_pipelines.curate.columns import Column
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.curate.layout import Layout
from hyperbo_pipelines.curate.raw_files import raw_file

RECORDS_NAME = "records.parquet"
METADATA_NAME = "metadata.json"
# The metadata that identify an evaluation; the others tell when and where it ran and what it cost.
IDENTITY = ("dataset", "manifest_hash", "preparation", "protocol", "code_version", "methods")
SPLIT = "runs"
ORIGIN = "bo_run"
# The metric that `y` is warped from; the manifest holds its name in the observed dataset.
OBJECTIVE = "objective"
_EXTRA = (
    Column("method", "text", "method that chose the input"),
    Column("seed", "integer", "seed of the run"),
    Column("iteration", "integer", "iteration of the run, from 1"),
    Column("observed_trial", "text", "trial_id, in the dataset observed, of the trial that was looked up"),
    Column("prior", "text", "id of the pre-trained prior behind the run; empty: none, or not recorded"),
    Column("dataset", "text", "dataset and version observed, <name>/<config>:<version>"),
    Column("evaluation", "text", "id of the evaluation that the run belongs to"),
)


@dataclass(frozen=True)
class EvaluationFiles:
    """The files of an evaluation in a folder.

    Attributes:
      evaluation_id: 16 hexadecimal digits, a hash over `IDENTITY` and the run records. The same methods on
        the same data by the same code, with the same records, have the same id.
      records: the file of run records, `records.parquet`.
      metadata_file: the file of metadata, `metadata.json`.
      metadata: the metadata.
    """

    evaluation_id: str
    records: RawFile
    metadata_file: RawFile
    metadata: EvaluationMetadata


def find_evaluation_files(folder: Path) -> EvaluationFiles:
    """Read the files of an evaluation once, check them, and describe them.

    Raises:
      InvalidInputError: a file cannot be read or is invalid, or the two belong to different evaluations.
    """
    path = folder / RECORDS_NAME
    records, metadata = read_records(path), read_metadata(folder / METADATA_NAME)
    try:
        check_records_belong(records, metadata)
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=str(path), fix=error.fix) from error
    _check_names(records, path)
    described = raw_file(path, SPLIT, rows=pq.read_metadata(path).num_rows)
    identity = {key: metadata[key] for key in IDENTITY} | {"records": described.sha256}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return EvaluationFiles(digest[:16], described, raw_file(folder / METADATA_NAME, SPLIT), metadata)


def _check_names(records: pd.DataFrame, path: Path) -> None:
    if "prior" in records and not pd.api.types.is_string_dtype(records["prior"]):
        raise InvalidInputError(
            f"column prior has type {records['prior'].dtype}",
            where=str(path),
            fix="give texts, empty where a method has no prior",
        )
    arms = records[["method", "task"]].drop_duplicates()
    joined = arms["method"] + "/" + arms["task"]
    if joined.duplicated().any():
        raise InvalidInputError(
            f"two pairs of method and task are both {joined[joined.duplicated()].iloc[0]!r} when joined",
            where=str(path),
            fix="rename the method: ids of records are joined from both",
        )


def bo_runs_layout(space: SearchSpace) -> Layout:
    """The columns of the records of runs on a search space."""
    return Layout(space, metrics=(OBJECTIVE, "regret", "y_max"), extra=_EXTRA)
