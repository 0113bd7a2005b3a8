"""ToTables and SpillTables: trials laid out as Arrow tables, and tables put aside on disk, sorted."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from hyperbo.trial import Trial
from pipelines.columns import CANONICAL_ORDER, Layout

# A trial with its curves takes tens of kilobytes as Python objects.
_TRIALS_AT_ONCE = 1024
# Rows of a spilled file that are read back together.
ROWS_OF_BATCH = 128


class ToTables(beam.PTransform):
    """PCollection[Trial] -> PCollection[pa.Table]: `Layout.raw_table` with a first column `split`.

    Args:
      layout: the columns of the records.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def expand(self, input_or_inputs: Any) -> Any:
        """Gather the trials of each bundle."""
        return input_or_inputs | "Gather" >> beam.ParDo(_Gather(self._layout))


class _Gather(beam.DoFn):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._trials: list[Trial] = []

    def start_bundle(self) -> None:
        self._trials = []

    def process(self, element: Trial, *args, **kwargs) -> Iterable[pa.Table]:
        self._trials.append(element)
        if len(self._trials) == _TRIALS_AT_ONCE:
            yield self._table()

    def finish_bundle(self) -> Any:
        if self._trials:
            window = GlobalWindow()
            yield WindowedValue(self._table(), window.max_timestamp(), (window,))

    def _table(self) -> pa.Table:
        trials, self._trials = self._trials, []
        table = self._layout.raw_table(trials)
        return table.add_column(0, "split", pa.array([trial.split for trial in trials], pa.string()))


class SpillTables(beam.PTransform):
    """PCollection[pa.Table] -> PCollection[str]: each table written as one file; the names of the files.

    Beam's in-memory runner holds all elements between two stages: names cost it nothing. Rows are sorted by
    split and `CANONICAL_ORDER`, so that the files can be merged with a few rows of each in memory. A bundle
    that is tried again writes other files; only those whose names arrive count.

    Args:
      folder: where the files go; every worker must see it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, input_or_inputs: Any) -> Any:
        """Write every table by itself."""
        return input_or_inputs | "Write" >> beam.Map(_spill, self._folder)


def _spill(table: pa.Table, folder: Path) -> str:
    name = f"{uuid.uuid4().hex}.arrow"
    keys = [(key, "ascending") for key in ("split", *CANONICAL_ORDER)]
    ordered = table.combine_chunks().sort_by(keys).combine_chunks()
    with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(ordered, max_chunksize=ROWS_OF_BATCH)
    return name
