"""Curated tables on disk, merged into the records of each split in canonical order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyperbo_pipelines.curate.columns import ARROW_TYPES, CANONICAL_ORDER, RELATIONS, Column, schema
from hyperbo_pipelines.curate.summarize import Summary
from hyperbo_pipelines.curate.tables import ROWS_OF_BATCH

# How much of a split is in memory at once; also the size of a row group of its Parquet file.
_BYTES_AT_ONCE = 32 << 20
_OPEN_FILES = 64
_KEYS = ("split", *CANONICAL_ORDER)


@dataclass(frozen=True)
class Assembly:
    """The records of a curation, read split by split.

    Attributes:
      folder: folder of the tables.
      summary: summary of the curation.
      columns: columns of the records.
      splits: for each split, the positions of its rows in canonical order.
      rows_at_once: number of rows that `read` yields together.
    """

    folder: Path
    summary: Summary
    columns: tuple[Column, ...]
    splits: Mapping[str, np.ndarray]
    rows_at_once: int
    _batches: tuple[tuple[str, int], ...]
    _starts: np.ndarray

    def read(self, split: str) -> Iterator[pa.Table]:
        """The records of a split in `CANONICAL_ORDER`, some rows at a time."""
        block_of = {trial: block.block_id for block in self.summary.blocks for trial in block.trial_ids}
        order = self.splits[split]
        opened = lru_cache(_OPEN_FILES)(_open)
        for start in range(0, len(order), self.rows_at_once):
            table = self._gather(order[start : start + self.rows_at_once], opened)
            yield self._complete(table, block_of)

    def _gather(self, rows: np.ndarray, opened: Callable[[Path], Any]) -> pa.Table:
        which = np.searchsorted(self._starts, rows, side="right") - 1
        pieces, places = [], []
        by_batch = np.argsort(which, kind="stable")
        for group in np.split(by_batch, np.flatnonzero(np.diff(which[by_batch])) + 1):
            number = int(which[group[0]])
            name, index = self._batches[number]
            batch = opened(self.folder / name).get_batch(index)
            pieces.append(batch.take(pa.array(rows[group] - self._starts[number])))
            places.append(group)
        inverse = np.argsort(np.concatenate(places), kind="stable")
        return pa.Table.from_batches(pieces).combine_chunks().take(pa.array(inverse))

    def _complete(self, table: pa.Table, block_of: Mapping[str, str]) -> pa.Table:
        """Add duplicates and blocks, if the tables do not hold them yet."""
        for column in RELATIONS:
            if column.name not in table.column_names:
                ids = table["trial_id"].to_pylist()
                found = self.summary.duplicates if column.name == "duplicates" else block_of
                empty = () if column.name == "duplicates" else ""
                values = pa.array([found.get(i, empty) for i in ids], ARROW_TYPES[column.kind])
                table = table.append_column(column.name, values)
        wanted = schema(self.columns)
        return table.select(wanted.names).cast(wanted)


def assemble(folder: Path, summary: Summary, columns: Sequence[Column]) -> Assembly:
    """Find the order of the records that a curation wrote to a folder.

    Only the keys are read, so the memory needed does not depend on the size of the records.
    """
    wanted = [*_KEYS, "source"] if summary.repeated else list(_KEYS)
    batches: list[tuple[str, int]] = []
    lengths: list[int] = []
    keys = []
    for name in summary.tables:
        # Mapped into memory: only the pages with the keys are read.
        reader = pa.ipc.open_file(pa.memory_map(str(folder / name)))
        parts = [reader.get_batch(index).select(wanted) for index in range(reader.num_record_batches)]
        batches += [(name, index) for index in range(len(parts))]
        lengths += [part.num_rows for part in parts]
        if parts:
            keys += [pa.concat_batches(parts)]
    splits: dict[str, np.ndarray] = {}
    if keys:
        table = pa.Table.from_batches(keys).append_column("place", pa.array(np.arange(sum(lengths))))
        if summary.repeated:
            again = pc.call_function(
                "is_in", [table["source"]], pc.SetLookupOptions(pa.array(summary.repeated))
            )
            table = table.filter(pc.call_function("invert", [again]))
        options = pc.SortOptions([(key, "ascending") for key in _KEYS])
        order = pc.call_function("sort_indices", [table], options).to_numpy()
        names = table["split"].combine_chunks().dictionary_encode()
        codes, places = names.indices.to_numpy()[order], table["place"].to_numpy()[order]
        # The order of the files has no meaning, so splits are sorted by name.
        for split, code in sorted((split, code) for code, split in enumerate(names.dictionary.to_pylist())):
            splits[split] = places[codes == code]
    size = sum((folder / name).stat().st_size for name in summary.tables)
    rows = max(sum(lengths), 1)
    at_once = int(np.clip(_BYTES_AT_ONCE * rows // max(size, 1), ROWS_OF_BATCH, 1 << 16))
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.int64)
    return Assembly(folder, summary, tuple(columns), splits, at_once, tuple(batches), starts)


def _open(path: Path) -> Any:
    return pa.ipc.open_file(pa.OSFile(str(path)))
