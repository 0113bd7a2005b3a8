"""The records of a version, read from Parquet one column at a time, and the comparison of two columns."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hyperbo_pipelines.curate.parquet import without_nulls
from jaxtyping import Bool, Int64

from hyperbo.errors import VersionConflictError
from pd1_builder.version.manifest import read_manifest
from pd1_builder.version.verification import parquet_files

Rows = Int64[np.ndarray, " n"]


class StoredRecords:
    """The records of a version, all splits one after another. No file stays open and no column in memory.

    Args:
      folder: folder of the version.

    Raises:
      NotAvailableError: the folder holds no version.
      VersionConflictError: a Parquet file is missing, or its size is not that of the manifest.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._paths = parquet_files(folder, self.manifest)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self._paths)

    def column_types(self) -> dict[str, str]:
        """Types of the stored columns by name, sorted. `split` is not stored."""
        schemas = [pq.read_schema(path) for path in self._paths.values()]
        return dict(sorted((column.name, _type_name(column.type)) for schema in schemas for column in schema))

    def column(self, name: str) -> pa.Array:
        """All values of a stored column, or of `split`; NaN for a number that is missing."""
        if name == "split":
            counts = [pq.read_metadata(path).num_rows for path in self._paths.values()]
            return pa.array(self.splits).take(pa.array(np.repeat(np.arange(len(counts)), counts)))
        tables = []
        for path in self._paths.values():
            with pq.ParquetFile(path) as file:
                tables.append(file.read(columns=[name]))
        return without_nulls(pa.concat_tables(tables))[name].combine_chunks()

    @cached_property
    def trial_ids(self) -> pa.Array:
        """The trial ids. Each occurs once.

        Raises:
          VersionConflictError: a trial id occurs twice.
        """
        ids = self.column("trial_id")
        if pc.call_function("count_distinct", [ids]).as_py() != len(ids):
            raise VersionConflictError(f"{self.folder}: a trial_id repeats; build the version again")
        return ids

    def count_others(self, rows: Rows) -> dict[tuple[str, str], int]:
        """Number of the records outside these rows, by split and task."""
        others = np.ones(len(self.trial_ids), bool)
        others[rows] = False
        names = ["split", "task"]
        table = pa.table([self.column(name) for name in names], names=names).filter(pa.array(others))
        groups = table.group_by(names).aggregate([([], "count_all")]).to_pylist()
        return dict(sorted(((group["split"], group["task"]), group["count_all"]) for group in groups))


def pair(old: StoredRecords, new: StoredRecords) -> tuple[Rows, Rows]:
    """Rows, in the old and in the new version, of the records that both have, in the new version's order.

    Records of the two versions correspond if their trial ids are equal.
    """
    old_rows = pc.call_function("index_in", [new.trial_ids], pc.SetLookupOptions(old.trial_ids))
    in_both = np.flatnonzero(old_rows.is_valid().to_numpy(False))
    return old_rows.drop_null().to_numpy().astype(np.int64), in_both


def differing(old: pa.Array, new: pa.Array) -> Bool[np.ndarray, " n"]:
    """Where two columns of one type differ. Floats differ if their bits differ, but all NaNs are equal."""
    if pa.types.is_list(old.type):
        lengths, new_lengths = (
            pc.call_function("list_value_length", [array]).to_numpy() for array in (old, new)
        )
        differ = lengths != new_lengths
        same = np.flatnonzero(~differ)
        if len(same) < len(old):
            old, new, lengths = old.take(pa.array(same)), new.take(pa.array(same)), lengths[same]
        row_of = np.repeat(same, lengths)
        differ[row_of[differing(old.flatten(), new.flatten())]] = True
        return differ
    if pa.types.is_floating(old.type):
        a, b = old.to_numpy().astype(np.float64), new.to_numpy().astype(np.float64)
        return (a.view(np.int64) != b.view(np.int64)) & ~(np.isnan(a) & np.isnan(b))
    return pc.call_function("not_equal", [old, new]).to_numpy(zero_copy_only=False)


def _type_name(column_type: pa.DataType) -> str:
    # Different writers give different names to the items of a list.
    if isinstance(column_type, pa.ListType):
        return f"list of {_type_name(column_type.value_type)}"
    return str(column_type)
