"""Parquet files of records: written and read a row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq


class RowGroup(NamedTuple):
    """Rows of a row group, and its bytes before compression."""

    rows: int
    size: int


def write_row_groups(tables: Iterable[pa.Table], path: Path) -> Iterator[pa.Table]:
    """Write each table as one row group, and yield it.

    Args:
      tables: tables of one schema.
      path: the file; it is complete when the iterator is exhausted.
    """
    writer = None
    try:
        for table in tables:
            if writer is None:
                # A dictionary helps with texts, which repeat; numbers hardly ever repeat.
                texts: Any = [field.name for field in table.schema if field.type == pa.string()]
                # Bounds ignore NaN: a reader may conclude that a column has none.
                bounded: Any = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    compression="zstd",
                    use_dictionary=texts,
                    write_statistics=bounded,
                )
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
            yield table
    finally:
        if writer is not None:
            writer.close()


def read_row_groups(path: Path, first: int = 0, count: int | None = None) -> Iterator[pa.Table]:
    """Consecutive row groups of a file, one at a time."""
    with pq.ParquetFile(path) as file:
        last = file.num_row_groups if count is None else first + count
        for index in range(first, last):
            yield file.read_row_group(index)


def row_group_sizes(path: Path) -> list[RowGroup]:
    """Rows and bytes of every row group of a file."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return [RowGroup(group.num_rows, group.total_byte_size) for group in groups]
