"""The content hash: the identity of a version's records, independent of the files that hold them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# `x` and `y` follow from the raw values, the search space and the warping, which are all hashed. Their last
# bit depends on the logarithm of the platform. `source` says where a record was read, not what it holds.
_NOT_HASHED = re.compile(r"source|y|x(\..*)?")


def content_hash(declared: Mapping[str, Any], splits: Mapping[str, Iterable[pa.Table]]) -> str:
    """Hash records column by column.

    Args:
      declared: `manifest.declared` of the version: JSON values from which the derived columns follow.
      splits: the records of each split in canonical order, in tables of any number of rows.

    Returns:
      SHA-256 as 64 hexadecimal digits. It does not depend on how the records are cut into tables.
    """
    digest = hashlib.sha256(json.dumps(declared, sort_keys=True).encode())
    for split in sorted(splits):
        rows = 0
        hashes: dict[str, _ColumnHash] = {}
        for table in splits[split]:
            rows += table.num_rows
            for name in table.column_names:
                if not _NOT_HASHED.fullmatch(name):
                    column = hashes.setdefault(name, _ColumnHash())
                    for chunk in table[name].chunks:
                        column.update(chunk)
        content = {name: hashes[name].hexdigest() for name in sorted(hashes)}
        digest.update(json.dumps([split, rows, content]).encode())
    return digest.hexdigest()


class _ColumnHash:
    """Running hash of a column: of its values, and of the lengths of lists and of texts.

    Values and lengths have separate hashes. A common one would depend on where the column is cut.
    """

    def __init__(self) -> None:
        self._parts = [hashlib.sha256() for _ in range(3)]

    def update(self, array: pa.Array) -> None:
        list_lengths, text_lengths, values_hash = self._parts
        if array.null_count:
            raise ValueError("a stored column has no nulls")
        if pa.types.is_list(array.type):
            list_lengths.update(_bytes(pc.call_function("list_value_length", [array]), "<i8"))
            array = array.flatten()
        if pa.types.is_string(array.type):
            text_lengths.update(_bytes(pc.call_function("binary_length", [array]), "<i8"))
            values_hash.update(b"".join(array.cast(pa.binary()).to_pylist()))
        elif pa.types.is_floating(array.type):
            values = array.to_numpy(zero_copy_only=False)
            # All NaNs count as equal: their payload bits mean nothing.
            values_hash.update(_bytes(np.where(np.isnan(values), np.nan, values), "<f8"))
        else:
            values_hash.update(_bytes(array, "<i8"))

    def hexdigest(self) -> str:
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).hexdigest()


def _bytes(values: Any, dtype: str) -> bytes:
    if isinstance(values, pa.Array):
        values = values.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype).tobytes()
