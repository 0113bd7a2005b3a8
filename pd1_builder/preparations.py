"""Preparations: what a reader makes of a version, named and frozen; every study of PD1 had its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64

from hyperbo.errors import InvalidInputError
from hyperbo.warping import online_map, output_warping
from pd1_builder.mf_prior_bench import TRAIN_COST, VALID_ERROR, TrainCostLimits, best_errors


@dataclass(frozen=True)
class Preparation:
    """A named reading of a version. Trials to which it gives no value are left out of tasks.

    Attributes:
      name: part of the provenance of everything made from it.
      source: who read the data so, and what was found there.
      datasets: names of the datasets that it is a reading of; None: of any.
      phases: phases whose trials count; None: all.
      diverged_values: whether a diverged trial counts with the best value from before it diverged, where it
        has one; if not, it has no value.
      missing_objective: raw objective of a trial without a value; None: it stays without.
      duplicates: `all` trials of the same task and input count, or the `last` that has a value, in the order
        matched phase 0, matched phase 1, unmatched phase 0, unmatched phase 1; of several in one split and
        phase, the smallest trial id.
      online: whether every task's warped values, those of all its trials that count, are mapped to [-2, 2]
        by `hyperbo.warping.online_map`; a trial without a value is then infeasible and has y = -2, while its
        objective stays NaN.
      train_cost_limits: not None: the value of a trial is the smallest valid error among the points of its
        curve that `best_errors` counts.
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
        """Columns that `prepare` needs beside task, phase, y and the objective."""
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
            source="no study: every trial with a finite y, of all phases",
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
        # Its import reads the column of the momentum beta under the name one_minus_momentum and declares the
        # range of 1 - beta for it, but converts nothing. Here momentum stays beta.
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


def preparation(name: str | None, dataset: str) -> Preparation:
    """Look a preparation of a dataset up by name; None: the default one, `paper` for pd1, else `observed`.

    >>> preparation(None, "hpob/5636").name
    'observed'

    Raises:
      InvalidInputError: there is none of that name, or it is a reading of other datasets.
    """
    family = dataset.partition("/")[0]
    chosen = PREPARATIONS.get(_DEFAULTS.get(family, "observed") if name is None else name)
    if chosen is None:
        raise InvalidInputError(f"unknown preparation {name!r}", fix=f"use one of {', '.join(PREPARATIONS)}")
    if chosen.datasets is not None and family not in chosen.datasets:
        raise InvalidInputError(
            f"the preparation {name!r} is a reading of {', '.join(chosen.datasets)}",
            where=dataset,
            fix="use observed",
        )
    return chosen


class Prepared(NamedTuple):
    """What a preparation makes of a table of trials.

    Attributes:
      table: the trials that count, in their order; among them trials without a value.
      objective: raw objective of each, NaN where it has none.
      y: warped objective of each, NaN where it has none.
    """

    table: pa.Table
    objective: Float64[np.ndarray, " n"]
    y: Float64[np.ndarray, " n"]


def prepare(table: pa.Table, preparation: Preparation, objective: str, warping: str) -> Prepared:
    """Read a table of trials as a preparation does.

    Args:
      table: trials, in the order of their version, with the columns `task`, `phase`, `y`, the objective and
        `preparation.columns()`.
      preparation: the reading.
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
    # What the version states already is taken from there, not computed again.
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
    return Prepared(table, values, y)


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
    # Within a split and phase rows are ordered by trial id, so that the first of them is to come last.
    order = np.lexsort((-rows, phase, split, has_value[rows], input_id, task))
    ends = np.append((np.diff(task[order]) != 0) | (np.diff(input_id[order]) != 0), True)
    return np.sort(rows[order[ends]])


def sorted_codes(texts: pa.ChunkedArray) -> tuple[Int64[np.ndarray, " n"], pa.StringArray]:
    """Texts as indices into their different values, which are sorted, and those values."""
    coded = texts.combine_chunks().dictionary_encode()
    order = pc.call_function("array_sort_indices", [coded.dictionary])
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return rank[coded.indices.to_numpy()], coded.dictionary.take(order)
