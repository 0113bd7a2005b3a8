"""The files of an evaluation: records and metadata, and the report that is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hyperbo.evaluation.metadata import EvaluationMetadata, read_metadata, write_metadata
from hyperbo.evaluation.records import read_records, write_records
from hyperbo.evaluation.report import write_report
from pipelines.bo_runs.evaluation import METADATA_NAME, RECORDS_NAME

REPORT_NAME = "report.html"


def write(folder: Path, records: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write records, metadata and report.

    Raises:
      InvalidInputError: records or metadata are invalid or not of one evaluation.
    """
    write_records(records, folder / RECORDS_NAME)
    write_metadata(metadata, folder / METADATA_NAME)
    write_report(records, metadata, folder / REPORT_NAME)


def read(folder: Path) -> tuple[pd.DataFrame, EvaluationMetadata]:
    """Read records and metadata.

    Raises:
      InvalidInputError: a file cannot be read.
    """
    return read_records(folder / RECORDS_NAME), read_metadata(folder / METADATA_NAME)


def write_report_again(folder: Path) -> None:
    """Write the report anew from records and metadata.

    Raises:
      InvalidInputError: as `read`.
    """
    write_report(*read(folder), folder / REPORT_NAME)
