"""Tables of trials: made from trials, warped, and written to disk."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import Trial
from hyperbo.data.warping import output_warping
from hyperbo_pipelines.curate.columns import CANONICAL_ORDER
from hyperbo_pipelines.curate.hyperparameters import codes_of
from hyperbo_pipelines.curate.layout import Layout

# A trial with its curves takes tens of kilobytes as Python objects.
_TRIALS_AT_ONCE = 1024
# Rows of a spilled file that are read back together.
ROWS_OF_BATCH = 128


class ToTables(beam.DoFn):
    """PCollection[Trial] -> PCollection[pa.Table]: `Layout.raw_table` with a first column `split`.

    Args:
      layout: the columns of the records.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._trials: list[Trial] = []

    def start_bundle(self) -> None:
        """Begin without trials."""
        self._trials = []

    def process(self, element: Trial, *args, **kwargs) -> Iterable[pa.Table]:
        """Gather trials; yield a table when there are enough of them."""
        self._trials.append(element)
        if len(self._trials) == _TRIALS_AT_ONCE:
            yield self._table()

    def finish_bundle(self) -> Any:
        """Yield the table of the other trials."""
        if self._trials:
            window = GlobalWindow()
            yield WindowedValue(self._table(), window.max_timestamp(), (window,))

    def _table(self) -> pa.Table:
        trials, self._trials = self._trials, []
        table = self._layout.raw_table(trials)
        return table.add_column(0, "split", pa.array([trial.split for trial in trials], pa.string()))


def spill_table(table: pa.Table, folder: Path) -> str:
    """Write a table as one file into a folder that every worker sees, and return the name of the file.

    Beam's in-memory runner holds all elements between two stages; names take little memory. Rows are sorted
    by split and `CANONICAL_ORDER`, so that the files can be merged with a few rows of each in memory. A
    bundle that is tried again writes other files; only the files whose names arrive count.
    """
    name = f"{uuid.uuid4().hex}.arrow"
    keys = [(key, "ascending") for key in ("split", *CANONICAL_ORDER)]
    ordered = table.combine_chunks().sort_by(keys).combine_chunks()
    with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(ordered, max_chunksize=ROWS_OF_BATCH)
    return name


def warp_table(table: pa.Table, space: SearchSpace, objective: str, warping: str) -> pa.Table:
    """Add `x.<column>` and `y` to every row, Section 7.1 "PD1".

    `x` is the input in the unit cube, by the *declared* bounds; y = -ln(objective + 1e-10) under the warping
    `negative_log`. `y` is NaN if the trial diverged, is infeasible, or has no finite objective.
    """
    x = space.to_unit(codes_of(table, space))
    value = table[f"metrics.{objective}"].to_numpy()
    done = (np.array(table["status"].to_pylist()) == "done") & np.isfinite(value)
    y = np.full(len(value), np.nan)
    y[done] = output_warping(warping).warp(value[done])
    table = table.append_column("y", pa.array(y))
    for column, name in enumerate(space.columns):
        table = table.append_column(f"x.{name}", pa.array(x[:, column]))
    return table
