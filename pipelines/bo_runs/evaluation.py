"""Finding an evaluation: its run records and metadata, checked before any pipeline runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.metadata import EvaluationMetadata, check_records_belong, read_metadata
from hyperbo.evaluation.records import read_records
from pipelines.bo_runs.layout import SPLIT
from pipelines.raw_files import sha256_of
from pipelines.records import RawFile

RECORDS_NAME = "records.parquet"
METADATA_NAME = "metadata.json"
# What an evaluation is; its other metadata say when and where it ran and what it cost.
IDENTITY = ("dataset", "manifest_hash", "preparation", "protocol", "code_version", "methods")


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that lies in a folder.

    Attributes:
      evaluation_id: 16 hexadecimal digits, a hash over `IDENTITY` and the run records: the same methods run
        again on the same data by the same code, with the same outcome, are the same evaluation.
      records: the run records, `records.parquet`.
      metadata_file: the metadata, `metadata.json`.
      metadata: what that file holds.
    """

    evaluation_id: str
    records: RawFile
    metadata_file: RawFile
    metadata: EvaluationMetadata


def read_evaluation(folder: Path) -> Evaluation:
    """Read the files of an evaluation once, check them, and describe them.

    Raises:
      InvalidInputError: a file cannot be read or is invalid, or the two are not of one evaluation.
    """
    path = folder / RECORDS_NAME
    records, metadata = read_records(path), read_metadata(folder / METADATA_NAME)
    try:
        check_records_belong(records, metadata)
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=str(path), fix=error.fix) from error
    _check_names(records, path)
    described = _describe(path, pq.read_metadata(path).num_rows)
    identity = {key: metadata[key] for key in IDENTITY} | {"records": described.sha256}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Evaluation(digest[:16], described, _describe(folder / METADATA_NAME, 0), metadata)


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


def _describe(path: Path, rows: int) -> RawFile:
    return RawFile(path, SPLIT, 0, sha256_of(path), path.stat().st_size, rows)
