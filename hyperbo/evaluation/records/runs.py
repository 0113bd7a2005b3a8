"""Run records: one row per method, task, seed and iteration; figures and tables are made from them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from hyperbo.errors import InvalidInputError
from hyperbo.storage.atomic import write_atomically

TEXT_COLUMNS = ("method", "task", "task_dataset", "trial_id")
INTEGER_COLUMNS = ("seed", "iteration")
FLOAT_COLUMNS = ("y", "objective", "y_max")
COLUMNS = (
    "method",
    "task",
    "task_dataset",
    "seed",
    "iteration",  # 1, 2, ...
    "trial_id",  # the observed candidate
    "y",  # its warped objective, to be maximised
    "objective",  # its raw objective, for example an error rate
    "y_max",  # the largest y among the task's candidates
)
# Optional, only together: the prediction of the chosen candidate's y before it was observed, a normal
# distribution by its mean and standard deviation (noise included); NaN in a row without a prediction.
PREDICTION_COLUMNS = ("mean", "deviation")
# Optional: the smallest y among the task's candidates, for normalised regret; the largest y of the trials
# that the run was given before its first iteration, with its raw objective; NaN for a run without any.
RANGE_COLUMN, INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN = "y_min", "y_initial", "objective_initial"
RUN = ["method", "task", "seed"]
_ROWS_NAMED = 3


def validate_records(records: pd.DataFrame, *, where: str = "run records") -> None:
    """Check that a frame holds run records; other columns are allowed.

    Raises:
      InvalidInputError: a column is missing or has a wrong type; a number is not finite; a row of a run is
        missing or there twice; a task has two `y_max` or two datasets, or a `y` above its `y_max`; a
        prediction lacks its mean or deviation, or its deviation is not positive. The message names the rows.
    """
    _validate_columns(records, where)
    records = records.reset_index(drop=True)
    for column in FLOAT_COLUMNS:
        _refuse(records, ~np.isfinite(records[column].to_numpy()), f"{column} is not finite", where)
    _refuse(records, records["iteration"].to_numpy() < 1, "iteration is below 1", where)
    duplicated = records.duplicated([*RUN, "iteration"], keep=False).to_numpy()
    _refuse(records, duplicated, "the same method, task, seed and iteration more than once", where)
    # Iterations are distinct and at least 1 here, so a run without a gap has as many rows as iterations.
    iterations = records.groupby(RUN)["iteration"]
    gap = (iterations.transform("max") != iterations.transform("size")).to_numpy()
    _refuse(records, gap, "the run lacks an iteration between 1 and its last", where)
    for group, key, column in (
        ("task", "task", "task_dataset"),
        ("task", "task", "y_max"),
        ("task", "task", RANGE_COLUMN),
        ("run", RUN, INITIAL_COLUMN),
    ):
        if column in records.columns:
            several = (records.groupby(key)[column].transform("nunique") > 1).to_numpy()
            _refuse(records, several, f"the {group} has more than one {column}", where)
    above = records["y"].to_numpy() > records["y_max"].to_numpy()
    _refuse(records, above, "y is above y_max, so regret would be negative", where)
    if RANGE_COLUMN in records.columns:
        below = ~(records["y"].to_numpy() >= records[RANGE_COLUMN].to_numpy())
        _refuse(records, below, f"y is below {RANGE_COLUMN}", where)
    if INITIAL_COLUMN in records.columns:
        above = records[INITIAL_COLUMN].to_numpy() > records["y_max"].to_numpy()
        _refuse(records, above, f"{INITIAL_COLUMN} is above y_max", where)
    if has_predictions(records):
        mean, deviation = (records[column].to_numpy() for column in PREDICTION_COLUMNS)
        half = np.isnan(mean) != np.isnan(deviation)
        _refuse(records, half, "only one of mean and deviation is given", where)
        _refuse(records, np.isinf(mean) | np.isinf(deviation), "mean or deviation is infinite", where)
        _refuse(records, deviation <= 0, "deviation is not above 0", where)


def has_predictions(records: pd.DataFrame) -> bool:
    """Whether the records have predictions."""
    return set(PREDICTION_COLUMNS) <= set(records.columns)


def _validate_columns(records: pd.DataFrame, where: str) -> None:
    missing = [column for column in COLUMNS if column not in records.columns]
    if missing:
        raise InvalidInputError(
            f"columns missing: {', '.join(missing)}", where=where, fix=f"give {', '.join(COLUMNS)}"
        )
    optional = (RANGE_COLUMN, INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN)
    of_protocol = [column for column in optional if column in records.columns]
    predictions = [column for column in PREDICTION_COLUMNS if column in records.columns]
    if len(predictions) == 1:
        raise InvalidInputError(
            f"column {predictions[0]} stands alone",
            where=where,
            fix=f"give {' and '.join(PREDICTION_COLUMNS)}, or neither",
        )
    checks = (
        (TEXT_COLUMNS, "text", pd.api.types.is_string_dtype),
        (INTEGER_COLUMNS, "integers", pd.api.types.is_integer_dtype),
        ((*FLOAT_COLUMNS, *predictions, *of_protocol), "floating-point numbers", pd.api.types.is_float_dtype),
    )
    for columns, kind, holds in checks:
        for column in columns:
            if not holds(records[column]):
                raise InvalidInputError(
                    f"column {column} has type {records[column].dtype}", where=where, fix=f"give {kind}"
                )
    if records.empty:
        raise InvalidInputError("no row", where=where, fix="run the evaluation first")
    absent = records[[*TEXT_COLUMNS, *INTEGER_COLUMNS]].isna().any(axis=1).to_numpy()
    _refuse(records.reset_index(drop=True), absent, "a name, seed or iteration is missing", where)


def _refuse(records: pd.DataFrame, bad: np.ndarray, what: str, where: str) -> None:
    if not bad.any():
        return
    rows = np.flatnonzero(bad)
    named = [
        f"row {row} (method {record['method']}, task {record['task']}, seed {record['seed']}, "
        f"iteration {record['iteration']})"
        for row, record in records.iloc[rows[:_ROWS_NAMED]].iterrows()
    ]
    more = f" and {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    raise InvalidInputError(what, where=f"{where}, {', '.join(named)}{more}")


def write_records(records: pd.DataFrame, path: Path) -> None:
    """Check run records and write them to a Parquet file, atomically.

    Raises:
      InvalidInputError: the records are invalid (`validate_records`).
    """
    validate_records(records)
    others = [column for column in records.columns if column not in COLUMNS]
    write_parquet(records[[*COLUMNS, *others]], path)


def read_records(path: Path) -> pd.DataFrame:
    """Read run records from Parquet and check them.

    Raises:
      InvalidInputError: the file is not readable as Parquet, or its records are invalid (`validate_records`).
    """
    records = read_parquet(path, "run records")
    validate_records(records, where=str(path))
    return records


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame without its index to a Parquet file, atomically."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    write_atomically(path, buffer.getvalue())


def read_parquet(path: Path, what: str) -> pd.DataFrame:
    """Read a Parquet file; `what` names its content in messages.

    Raises:
      InvalidInputError: the file is not readable as Parquet.
    """
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"{what} cannot be read: {error}", where=str(path), fix="run the evaluation again"
        ) from error
