"""The folder of an evaluation: records, losses and metadata, and the report that is made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from hyperbo_pipelines.bo_runs.evaluation import METADATA_NAME, RECORDS_NAME

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.diagnostics import study_figure
from hyperbo.evaluation.measures.study import study_points
from hyperbo.evaluation.pages.report import write_report
from hyperbo.evaluation.records.join import Evaluation, join_evaluations
from hyperbo.evaluation.records.losses import LOSSES_NAME, read_losses, write_losses
from hyperbo.evaluation.records.metadata import read_metadata, write_metadata
from hyperbo.evaluation.records.runs import read_records, write_records
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.staging import publish

REPORT_NAME = "report.html"
# Of a study: regret by the quantity that it varies.
STUDY_TABLE_NAME = "study.csv"
STUDY_FIGURE_NAME = "study.svg"


def write(folder: Path, evaluation: Evaluation) -> None:
    """Write records, losses, metadata and report; for a study also its table and figure.

    Raises:
      InvalidInputError: records, losses or metadata are invalid, or do not belong together.
    """
    write_records(evaluation.records, folder / RECORDS_NAME)
    if evaluation.losses is not None:
        write_losses(evaluation.losses, folder / LOSSES_NAME)
    write_metadata(evaluation.metadata, folder / METADATA_NAME)
    write_report_again(folder)


def read(*folders: Path) -> Evaluation:
    """Read evaluations, and put those of several folders together.

    Raises:
      InvalidInputError: a file cannot be read, or the evaluations cannot be joined.
    """
    found = {str(folder): _read(folder) for folder in folders}
    return next(iter(found.values())) if len(found) == 1 else join_evaluations(found)


def _read(folder: Path) -> Evaluation:
    if not (folder / METADATA_NAME).is_file():
        what = "this folder holds no evaluation" if folder.is_dir() else "there is no such folder"
        raise InvalidInputError(what, where=str(folder), fix="name the folder that report.html is in")
    records = read_records(folder / RECORDS_NAME)
    path = folder / LOSSES_NAME
    losses = read_losses(path) if path.exists() else None
    return Evaluation(records, read_metadata(folder / METADATA_NAME), losses)


def write_report_again(folder: Path) -> None:
    """Write the report again from records, losses and metadata; for a study also its table and figure.

    Raises:
      InvalidInputError: a file cannot be read.
    """
    evaluation = read(folder)
    write_report(evaluation.records, evaluation.metadata, folder / REPORT_NAME, losses=evaluation.losses)
    points = study_points(evaluation.records, evaluation.metadata)
    if points:
        table = pd.DataFrame([asdict(point) for point in points]).to_csv(index=False)
        write_atomically(folder / STUDY_TABLE_NAME, table.encode())
        write_atomically(folder / STUDY_FIGURE_NAME, study_figure("study", points).encode())


def write_joined(folders: Sequence[Path], out: Path) -> None:
    """Join evaluations of several folders to one, in a new folder that appears when it is complete.

    Raises:
      InvalidInputError: the new folder exists already, a file cannot be read, or the evaluations cannot be
        joined.
    """
    if out.exists():
        raise InvalidInputError("exists already", where=str(out), fix="name a new folder with --out")
    evaluation = read(*folders)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as temporary:
        folder = Path(temporary) / "joined"
        folder.mkdir()
        write(folder, evaluation)
        publish(folder, out)
