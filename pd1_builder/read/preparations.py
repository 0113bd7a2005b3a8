"""Preparations: named, frozen ways to read a version. Every study of PD1 read it in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64

from hyperbo.data.warping import online_map, output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import suggestion

TRAIN_COST, VALID_ERROR = "curves.train_cost", "curves.valid/error_rate"


@dataclass(frozen=True)
class TrainCostLimits:
    """Limits on the train cost accumulated along a curve, as in mf-prior-bench.

    Attributes:
      points: by task, the accumulated cost from which on a point does not count.
      quantiles: by task, a quantile of the largest accumulated costs of its inputs. No point of an input that
        reaches it counts.
    """

    points: Mapping[str, float] = field(default_factory=dict)
    quantiles: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Preparation:
    """A named way to read a version. Tasks contain only the trials to which it gives a value.

    Attributes:
      name: its name, which is part of the provenance of everything made with it.
      source: who read the data in this way, and how.
      datasets: names of the datasets that it can read; None for all.
      phases: phases whose trials count; None for all.
      diverged_values: if true, a diverged trial has its best value from before it diverged, if there is one;
        if false, it has no value.
      missing_objective: raw objective of a trial without a value; None to leave it without one.
      duplicates: which trials of the same task and input count. `all`: every one. `last`: the last one with a
        value, in the order matched phase 0, matched phase 1, unmatched phase 0, unmatched phase 1; within a
        split and phase the one with the smallest trial id.
      online: if true, the warped values of each task are mapped to [-2, 2] by
        `hyperbo.data.warping.online_map`. A trial without a value is then infeasible: its y is -2, and its
        objective stays NaN.
      train_cost_limits: if given, the value of a trial is the smallest valid error among the points of its
        curve that count for `best_errors`.
    """

    name: str
    source: str
    datasets: tuple[str, ...] | None = ("pd1",)
    phases: tuple[int, ...] | None = None
    diverged_values: bool = False
    missing_objective: float | None = None
    duplicates: Literal["all", "last"] = "all"
    online: bool = False
    train_cost_limits: TrainCostLimits | None = None

    def columns(self) -> tuple[str, ...]:
        """Columns that `prepare` needs besides task, phase, y and the objective."""
        return (
            *(("diverged",) if self.diverged_values else ()),
            *(("split", "input_id") if self.duplicates == "last" else ()),
            *((TRAIN_COST, VALID_ERROR) if self.train_cost_limits is not None else ()),
        )


PREPARATIONS: dict[str, Preparation] = {
    preparation.name: preparation
    for preparation in (
        Preparation(
            "observed",
            source="no study: every trial with a finite y, in all phases",
            datasets=None,
        ),
        Preparation(
            "paper",
            source="Wang et al., JMLR 25 (2024): both phases, rows without a value dropped",
            phases=(0, 1),
        ),
        Preparation(
            "online",
            source="Wang et al., JMLR 25 (2024), the online experiments: as `paper`, with diverged trials as "
            "infeasible ones, each task's warped values mapped to [-2, 2]",
            datasets=None,
            phases=(0, 1),
            online=True,
        ),
        # Syne Tune names the column of the momentum beta one_minus_momentum and declares the range of 1 -
        # beta, but converts no value. Here momentum stays beta.
        Preparation(
            "syne_tune",
            source="Syne Tune, pd1_import.py: the two phase-1 files, every row; NaN after the end of a curve",
            phases=(1,),
            diverged_values=True,
        ),
        Preparation(
            "empirical_gp",
            source="empirical-GP study with BoTorch, pd1_full_data.py: rows without best_valid/error_rate, "
            "all diverged, count as error 1; of the same task and input, the file read last counts",
            diverged_values=True,
            missing_objective=1.0,
            duplicates="last",
        ),
        Preparation(
            "mf_prior_bench",
            source="mf-prior-bench, pd1/processing/process_script.py, tables of its surrogates: points "
            "without accumulated train cost dropped, limits on that cost for four tasks; of the same task and"
            " input, the file read last counts",
            duplicates="last",
            train_cost_limits=TrainCostLimits(
                points={"lm1b-transformer-2048": 10_000.0, "uniref50-transformer-128": 4_000.0},
                quantiles={"imagenet-resnet50-512": 0.95, "cifar100-wrn-2048": 0.93},
            ),
        ),
    )
}
_DEFAULTS = {"pd1": "paper"}


def find_preparation(name: str | None, dataset: str) -> Preparation:
    """The preparation with a name; None for the default of the dataset: `paper` for pd1, else `observed`.

    >>> find_preparation(None, "hpob/5636").name
    'observed'

    Raises:
      InvalidInputError: there is no preparation of that name, or it cannot read this dataset.
    """
    family = dataset.partition("/")[0]
    chosen = PREPARATIONS.get(_DEFAULTS.get(family, "observed") if name is None else name)
    if chosen is None:
        raise InvalidInputError(f"unknown preparation {name!r}", fix=suggestion(str(name), PREPARATIONS))
    if chosen.datasets is not None and family not in chosen.datasets:
        raise InvalidInputError(
            f"the preparation {name!r} reads only {', '.join(chosen.datasets)}",
            where=dataset,
            fix="use observed",
        )
    return chosen


class PreparedTrials(NamedTuple):
    """Trials as a preparation reads them.

    Attributes:
      table: the trials that count, in their order. Some may have no value.
      objective: raw objective of each trial; NaN if it has no value.
      y: warped objective of each trial; NaN if it has no value.
    """

    table: pa.Table
    objective: Float64[np.ndarray, " n"]
    y: Float64[np.ndarray, " n"]


def prepare(table: pa.Table, preparation: Preparation, objective: str, warping: str) -> PreparedTrials:
    """Apply a preparation to a table of trials.

    Args:
      table: trials, in the order of their version, with the columns `task`, `phase`, `y`, the objective and
        `preparation.columns()`.
      preparation: the preparation.
      objective: column of the raw objective.
      warping: name of the output warping.
    """
    y = table["y"].to_numpy()
    values = np.where(np.isfinite(y), table[objective].to_numpy(), np.nan)
    if preparation.train_cost_limits is not None:
        values = best_errors(table, preparation.train_cost_limits)
        y = np.full(len(table), np.nan)
    elif preparation.diverged_values:
        values = np.where(table["diverged"].to_numpy(), table[objective].to_numpy(), values)
    if preparation.missing_objective is not None:
        values = np.where(np.isfinite(values), values, preparation.missing_objective)
    # Values of y that the version has already are kept, not computed again.
    given = np.isfinite(values) & ~np.isfinite(y)
    if given.any():
        y = y.copy()
        y[given] = output_warping(warping).warp(values[given])
    rows = np.arange(len(table))
    if preparation.phases is not None:
        rows = rows[np.isin(table["phase"].to_numpy(), preparation.phases)]
    if preparation.duplicates == "last":
        rows = _last(table, rows, np.isfinite(y))
    if len(rows) < len(table):
        table, values, y = table.take(rows), values[rows], y[rows]
    if preparation.online:
        y = _online(table, y)
    return PreparedTrials(table, values, y)


def _online(table: pa.Table, y: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    codes, tasks = sorted_codes(table["task"])
    mapped = np.empty_like(y)
    for code in range(len(tasks)):
        of_task = codes == code
        mapped[of_task] = online_map(y[of_task], np.isfinite(y[of_task]))
    return mapped


def _last(table: pa.Table, rows: np.ndarray, has_value: np.ndarray) -> np.ndarray:
    task, input_id, split = (sorted_codes(table[name])[0][rows] for name in ("task", "input_id", "split"))
    phase = table["phase"].to_numpy()[rows]
    # Within a split and phase rows are in the order of their trial ids, and the first one is to come last.
    order = np.lexsort((-rows, phase, split, has_value[rows], input_id, task))
    ends = np.append((np.diff(task[order]) != 0) | (np.diff(input_id[order]) != 0), True)
    return np.sort(rows[order[ends]])


def best_errors(table: pa.Table, limits: TrainCostLimits) -> Float64[np.ndarray, " n"]:
    """The smallest valid error among the points of each trial's curve that count; NaN if none counts.

    A point counts if its train cost and those of all points before it are finite, and no limit excludes it.
    The table has the columns `task`, `input_id` and the two curves.
    """
    tasks = table["task"].combine_chunks().dictionary_encode()
    codes = tasks.indices.to_numpy()
    best = np.full(len(table), np.nan)
    # Task by task, which also bounds the memory of the padded curves.
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
    """Whether the input of each row stays below the quantile of largest costs, as a column."""
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


def sorted_codes(texts: pa.ChunkedArray) -> tuple[Int64[np.ndarray, " n"], pa.StringArray]:
    """Texts as indices into their different values, which are sorted, and those values."""
    coded = texts.combine_chunks().dictionary_encode()
    order = pc.call_function("array_sort_indices", [coded.dictionary])
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return rank[coded.indices.to_numpy()], coded.dictionary.take(order)
