"""Parquet files of records: written and read a row group at a time.

In a file, a number that is missing is NULL, as SQL and data frames expect it. In memory it is NaN: columns of
records have no nulls. `with_nulls` and `without_nulls` stand between the two. Files of earlier releases have
NaN in place of NULL, and are read as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


class RowGroup(NamedTuple):
    """Rows of a row group, and its bytes before compression."""

    rows: int
    size: int


def write_row_groups(tables: Iterable[pa.Table], path: Path) -> Iterator[pa.Table]:
    """Write each table as one row group, with NULL for NaN, and yield it as it was.

    Args:
      tables: tables of one schema.
      path: the file; it is complete when the iterator is exhausted.
    """
    writer = None
    try:
        for table in tables:
            stored = with_nulls(table)
            if writer is None:
                # A dictionary helps with texts, which repeat; numbers hardly ever repeat.
                texts: Any = [field.name for field in table.schema if field.type == pa.string()]
                writer = pq.ParquetWriter(path, stored.schema, compression="zstd", use_dictionary=texts)
            writer.write_table(stored, row_group_size=max(table.num_rows, 1))
            yield table
    finally:
        if writer is not None:
            writer.close()


def read_row_groups(path: Path, first: int = 0, count: int | None = None) -> Iterator[pa.Table]:
    """Consecutive row groups of a file, one at a time, without nulls."""
    with pq.ParquetFile(path) as file:
        last = file.num_row_groups if count is None else first + count
        for index in range(first, last):
            yield without_nulls(file.read_row_group(index))


def with_nulls(table: pa.Table) -> pa.Table:
    """A table with NULL in place of NaN, in columns of numbers and in lists of them."""
    return _replaced(table, _nan_to_null, nullable=True)


def without_nulls(table: pa.Table) -> pa.Table:
    """A table with NaN in place of NULL, in columns of numbers and in lists of them.

    >>> table = pa.table({"y": [1.0, None], "curve": [[None, 2.0], []]})
    >>> without_nulls(table).to_pydict()
    {'y': [1.0, nan], 'curve': [[nan, 2.0], []]}
    >>> with_nulls(without_nulls(table)).to_pydict()
    {'y': [1.0, None], 'curve': [[None, 2.0], []]}
    """
    return _replaced(table, _null_to_nan, nullable=False)


def _replaced(table: pa.Table, replace: Callable[[pa.Array], pa.Array], *, nullable: bool) -> pa.Table:
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        chunks = column.chunks
        if pa.types.is_floating(field.type):
            field = field.with_nullable(nullable)
            column = pa.chunked_array([replace(chunk) for chunk in chunks], field.type)
        elif pa.types.is_list(field.type) and pa.types.is_floating(field.type.value_type):
            column = pa.chunked_array([_of_items(chunk, replace) for chunk in chunks], field.type)
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=table.schema.metadata))


def _of_items(lists: Any, replace: Callable[[pa.Array], pa.Array]) -> pa.Array:
    # The offsets of a part of an array refer to the values of the whole.
    return pa.ListArray.from_arrays(lists.offsets, replace(lists.values), type=lists.type)


def _nan_to_null(numbers: Any) -> pa.Array:
    return pa.array(numbers.to_numpy(zero_copy_only=False), numbers.type, from_pandas=True)


def _null_to_nan(numbers: Any) -> pa.Array:
    return pc.call_function("coalesce", [numbers, float("nan")]) if numbers.null_count else numbers


def row_group_sizes(path: Path) -> list[RowGroup]:
    """Rows and bytes of every row group of a file."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return [RowGroup(group.num_rows, group.total_byte_size) for group in groups]
