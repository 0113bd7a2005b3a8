"""Losses of pre-trained priors: their records, tables by method, and Pearson correlations with regret.

Design of section "Correlations between the Test NLL, Pre-training Loss and BO Performance".
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.run_array import RunArray
from hyperbo.evaluation.spread import ROUNDING
from hyperbo.files import write_atomically

LOSSES_NAME = "losses.parquet"
KINDS: Mapping[str, str] = {
    "training_nll": "training NLL",  # Eq. (nll) on the training tasks
    "test_nll": "test NLL",  # Eq. (singleml) on trials of the test task
    "training_ekl": "training EKL",  # Eq. (multi-kl) on matched data of the training tasks
    "test_ekl": "EKL with the test task",  # Eq. (multi-kl) on matched data of training tasks and test task
}
COLUMNS = (
    "method",
    "held_out",  # what the prior was trained without: a test task, or the task dataset of test tasks
    "seed",
    "task",  # the test task of a test loss; empty for a loss on training tasks
    "kind",  # one of KINDS
    "value",
)
_KEY = ["method", "held_out", "seed", "task", "kind"]
# The paper's three panels, and the pair by which it finds negative transfer in HPO-B.
PAIRS = (
    ("test_nll", "regret"),
    ("training_nll", "regret"),
    ("training_nll", "test_nll"),
    ("test_ekl", "test_nll"),
)
_FEWEST_POINTS = 3


def quantity_name(kind: str) -> str:
    """The name of a kind of loss, or of regret, for a reader."""
    return "mean simple regret" if kind == "regret" else KINDS[kind]


def validate_losses(losses: pd.DataFrame, *, where: str = "losses") -> None:
    """Check that a frame holds losses of priors.

    Raises:
      InvalidInputError: a column is missing or of another type, a value is not finite, a kind is unknown, a
        test loss names no task or a training loss one, or a loss is there twice. The message names the first
        row.
    """
    missing = [column for column in COLUMNS if column not in losses.columns]
    if missing:
        raise InvalidInputError(f"columns missing: {', '.join(missing)}", where=where)
    text = [column for column in _KEY if column != "seed"]
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
        (losses.duplicated(_KEY), "the same loss a second time"),
    ):
        if bad.any():
            first = losses.iloc[int(np.argmax(bad))]
            raise InvalidInputError(what, where=f"{where}, {', '.join(f'{k} {first[k]}' for k in _KEY)}")


def check_losses_belong(losses: pd.DataFrame, metadata: EvaluationMetadata) -> None:
    """Check that metadata names every method, seed and test task of the losses.

    Raises:
      InvalidInputError: names what the metadata does not know of.
    """
    for column, known in (
        ("method", metadata["methods"]),
        ("seed", metadata["seeds"]),
        ("task", ["", *metadata["tasks"]]),
    ):
        unknown = sorted(set(losses[column].unique().tolist()) - set(known))
        if unknown:
            raise InvalidInputError(
                f"{column} not named in the metadata: {', '.join(map(str, unknown))}", where="losses"
            )


def write_losses(losses: pd.DataFrame, path: Path) -> None:
    """Check losses and write them as Parquet, whole or not at all.

    Raises:
      InvalidInputError: as `validate_losses`.
    """
    validate_losses(losses)
    buffer = io.BytesIO()
    losses[list(COLUMNS)].to_parquet(buffer, engine="pyarrow", index=False)
    write_atomically(path, buffer.getvalue())


def read_losses(path: Path) -> pd.DataFrame:
    """Read what `write_losses` wrote.

    Raises:
      InvalidInputError: the file cannot be read as Parquet, or as `validate_losses`.
    """
    try:
        losses = pd.read_parquet(path, engine="pyarrow")
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"losses cannot be read: {error}", where=str(path)) from error
    validate_losses(losses, where=str(path))
    return losses


def losses_of_priors(losses: pd.DataFrame, metadata: EvaluationMetadata) -> pd.DataFrame:
    """Losses with the prior as the unit, as `hyperbo.evaluation.regret.regrets_of_priors` has regrets.

    A loss is one of a prior; runs that share the prior, as those of HPO-B do, do not make more of it.

    Args:
      losses: valid losses, by the seed of every run.
      metadata: says how many runs share a prior.

    Returns:
      The losses, with the number of the prior as their seed; the mean where runs of one prior disagree.
    """
    by_prior = losses.assign(seed=losses["seed"] // metadata.get("runs_per_prior", 1))
    return by_prior.groupby(_KEY, sort=False)["value"].mean().reset_index()


def loss_array(
    losses: pd.DataFrame, kind: str, regrets: RunArray, task_datasets: Mapping[str, str]
) -> Float64[np.ndarray, "methods tasks seeds"]:
    """Losses of a kind by method, test task and seed, of the prior with which the test task was run.

    A loss on training tasks is that of the prior which held the test task, or its task dataset, out.

    Args:
      losses: valid losses.
      kind: one of `KINDS`.
      regrets: names the methods, tasks and seeds of the axes.
      task_datasets: task dataset by test task.

    Returns:
      The losses; NaN where there is none.
    """
    of_kind = losses[losses["kind"] == kind]
    # Of a task the exact name comes before the task dataset; a test loss has its task.
    by_key = of_kind.set_index(["method", "held_out", "seed", "task"])["value"].to_dict()
    values = np.full((len(regrets.methods), len(regrets.tasks), len(regrets.seeds)), np.nan)
    for i, method in enumerate(regrets.methods):
        for j, task in enumerate(regrets.tasks):
            row_task = task if kind.startswith("test_") else ""
            for k, seed in enumerate(regrets.seeds):
                for held_out in (task, task_datasets.get(task, task)):
                    if (method, held_out, seed, row_task) in by_key:
                        values[i, j, k] = by_key[method, held_out, seed, row_task]
                        break
    return values


@dataclass(frozen=True)
class Correlation:
    """Pearson correlation of two quantities over experiments, a prior of a method each.

    Attributes:
      x: a kind of loss.
      y: another kind, or `regret`.
      x_values: the first, mean over test tasks, by method and seed; NaN for what is not an experiment.
      y_values: the second.
      points: number of experiments.
      coefficient: the coefficient; NaN below 3 experiments, or where a quantity does not vary.
    """

    x: str
    y: str
    x_values: Float64[np.ndarray, "methods seeds"]
    y_values: Float64[np.ndarray, "methods seeds"]
    points: int
    coefficient: float


def correlations(
    losses: pd.DataFrame, regrets: RunArray, iteration: int, task_datasets: Mapping[str, str]
) -> tuple[Correlation, ...]:
    """Pearson correlations between losses and regret, figure "hold-out-related-correlation".

    An experiment is a method with a seed, that is a prior; its quantities are means over the test tasks, and
    one that lacks a loss on some task is left out. The correlation is over experiments of all methods
    together, so that it is mostly one between methods.

    Args:
      losses: valid losses, from `losses_of_priors`: counted once per run, a prior would count several times.
      regrets: complete regrets, from `hyperbo.evaluation.regret.regrets_of_priors`.
      iteration: at which regret is taken, counted from 1.
      task_datasets: task dataset by test task.

    Returns:
      One correlation for each of `PAIRS` of which there is an experiment.

    Raises:
      InvalidInputError: a run is missing, or there is no such iteration.
    """
    regrets.require_complete()
    means = {kind: loss_array(losses, kind, regrets, task_datasets).mean(axis=1) for kind in KINDS}
    means["regret"] = regrets.at(iteration).mean(axis=1)
    found = []
    for x, y in PAIRS:
        both = np.isfinite(means[x]) & np.isfinite(means[y])
        if both.any():
            of_x, of_y = np.where(both, means[x], np.nan), np.where(both, means[y], np.nan)
            coefficient = pearson(of_x[both], of_y[both])
            found.append(Correlation(x, y, of_x, of_y, int(both.sum()), coefficient))
    return tuple(found)


def pearson(x: Float64[np.ndarray, " n"], y: Float64[np.ndarray, " n"]) -> float:
    """Pearson's correlation coefficient; NaN below 3 points, or where x or y varies by no more than rounding.

    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 5.0])), 3)
    0.982
    """
    if len(x) < _FEWEST_POINTS or any(np.ptp(each) <= ROUNDING * np.abs(each).max() for each in (x, y)):
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
