"""How mf-prior-bench reads the curves of PD1: which points count, and the best valid error among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from jaxtyping import Float64

TRAIN_COST, VALID_ERROR = "curves.train_cost", "curves.valid/error_rate"


@dataclass(frozen=True)
class TrainCostLimits:
    """Points of a curve that do not count, by the train cost accumulated up to them.

    Attributes:
      points: by task, the accumulated cost from which on a point does not count.
      quantiles: by task, the quantile of the largest accumulated costs of its inputs; no point counts of an
        input that reaches it.
    """

    points: Mapping[str, float] = field(default_factory=dict)
    quantiles: Mapping[str, float] = field(default_factory=dict)


def best_errors(table: pa.Table, limits: TrainCostLimits) -> Float64[np.ndarray, " n"]:
    """The smallest valid error among the points of each trial that count.

    A point counts where its train cost and those of all points before it are finite, and no limit excludes
    it.

    Args:
      table: trials with the columns `task`, `input_id` and the two curves.
      limits: what is excluded beside.

    Returns:
      One error rate per trial; NaN where no point counts.
    """
    tasks = table["task"].combine_chunks().dictionary_encode()
    codes = tasks.indices.to_numpy()
    best = np.full(len(table), np.nan)
    # Task by task, which is also what bounds the memory of the padded curves.
    for code, task in enumerate(tasks.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        trials = table.select([TRAIN_COST, VALID_ERROR, "input_id"]).take(rows)
        costs, errors = _padded(trials[TRAIN_COST]), _padded(trials[VALID_ERROR])
        # The longest curve of a task may be absent from one of the two columns.
        points = min(costs.shape[1], errors.shape[1])
        accumulated = np.cumsum(costs, axis=1)[:, :points]
        counts = np.isfinite(accumulated)
        if task in limits.points:
            counts &= accumulated < limits.points[task]
        if task in limits.quantiles:
            counts &= _below_quantile(accumulated, counts, trials["input_id"], limits.quantiles[task])
        errors = errors[:, :points]
        lowest = np.where(counts & np.isfinite(errors), errors, np.inf).min(axis=1, initial=np.inf)
        best[rows] = np.where(np.isinf(lowest), np.nan, lowest)
    return best


def _below_quantile(
    accumulated: np.ndarray, counts: np.ndarray, input_ids: pa.ChunkedArray, quantile: float
) -> np.ndarray:
    """Rows, as a column, whose input stays below the quantile of all inputs' largest accumulated costs."""
    inputs = input_ids.combine_chunks().dictionary_encode()
    largest = np.full(len(inputs.dictionary), -np.inf)
    of_trial = np.where(counts, accumulated, -np.inf).max(axis=1, initial=-np.inf)
    np.maximum.at(largest, inputs.indices.to_numpy(), of_trial)
    known = largest[np.isfinite(largest)]
    limit = np.quantile(known, quantile) if len(known) else np.inf
    return (largest < limit)[inputs.indices.to_numpy()][:, None]


def _padded(curves: pa.ChunkedArray) -> Float64[np.ndarray, "n points"]:
    lists = curves.combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    padded = np.full((len(lists), int(lengths.max(initial=0))), np.nan)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = lists.flatten().to_numpy()
    return padded
