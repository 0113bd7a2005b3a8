"""Losses of pre-trained priors: one row per method, held-out data, seed, test task and kind of loss."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.metadata import EvaluationMetadata, check_named
from hyperbo.evaluation.records.runs import read_parquet, write_parquet

LOSSES_NAME = "losses.parquet"
KINDS: Mapping[str, str] = {
    "training_nll": "training NLL",  # Eq. 13 (nll) on the training tasks
    "test_nll": "test NLL",  # Eq. 14 (singleml) on trials of the test task
    "training_ekl": "training EKL",  # Eq. 8 (multi-kl) on matched data of the training tasks
    "test_ekl": "EKL with the test task",  # Eq. 8 (multi-kl), training and test tasks
}
KEY = [
    "method",
    "held_out",  # what the prior was trained without: a test task or a task dataset
    "seed",
    "task",  # the test task of a test loss; empty for a loss on training tasks
    "kind",  # one of KINDS
]
COLUMNS = (*KEY, "value")


def validate_losses(losses: pd.DataFrame, *, where: str = "losses") -> None:
    """Check that a frame holds losses of priors.

    Raises:
      InvalidInputError: a column is missing or has a wrong type, a value is not finite, a kind is unknown, a
        test loss has no task, a training loss has a task, or a loss is there twice. The message names the
        first such row.
    """
    missing = [column for column in COLUMNS if column not in losses.columns]
    if missing:
        raise InvalidInputError(f"columns missing: {', '.join(missing)}", where=where)
    text = [column for column in KEY if column != "seed"]
    wrong = [
        column
        for column, holds in (
            *((column, pd.api.types.is_string_dtype) for column in text),
            ("seed", pd.api.types.is_integer_dtype),
            ("value", pd.api.types.is_float_dtype),
        )
        if not holds(losses[column]) or losses[column].isna().any()
    ]
    if wrong:
        raise InvalidInputError(
            f"columns with another type or without a value: {', '.join(wrong)}",
            where=where,
            fix="give texts, seeds as integers, values as floating-point numbers",
        )
    of_test = losses["kind"].str.startswith("test_")
    for bad, what in (
        (~np.isfinite(losses["value"].to_numpy()), "value is not finite"),
        (~losses["kind"].isin(list(KINDS)), f"kind is none of {', '.join(KINDS)}"),
        (of_test & (losses["task"] == ""), "a test loss names no task"),
        (~of_test & (losses["task"] != ""), "a loss on training tasks names a test task"),
        (losses.duplicated(KEY), "the same loss a second time"),
    ):
        if bad.any():
            first = losses.iloc[int(np.argmax(bad))]
            raise InvalidInputError(what, where=f"{where}, {', '.join(f'{k} {first[k]}' for k in KEY)}")


def check_losses_belong(losses: pd.DataFrame, metadata: EvaluationMetadata) -> None:
    """Check that metadata names every method, seed and test task of the losses.

    Raises:
      InvalidInputError: the metadata lack a method, seed or test task; the message names it.
    """
    tasks = ["", *metadata["tasks"]]
    check_named(losses, "losses", method=metadata["methods"], seed=metadata["seeds"], task=tasks)


def write_losses(losses: pd.DataFrame, path: Path) -> None:
    """Check losses and write them to a Parquet file, atomically.

    Raises:
      InvalidInputError: the losses are invalid (`validate_losses`).
    """
    validate_losses(losses)
    write_parquet(losses[list(COLUMNS)], path)


def read_losses(path: Path) -> pd.DataFrame:
    """Read losses from a Parquet file and check them.

    Raises:
      InvalidInputError: the file is not readable as Parquet, or its losses are invalid (`validate_losses`).
    """
    losses = read_parquet(path, "losses")
    validate_losses(losses, where=str(path))
    return losses
