"""The records of a bundle as a Parquet file of known columns, which does not grow when it is read.

Nothing in the file is compressed, so it is no larger in memory than the file, but for values that repeat:
rows are limited, and texts are read as codes with a dictionary, and short.
"""

from __future__ import annotations

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.runs import (
    COLUMNS,
    INITIAL_COLUMN,
    INITIAL_OBJECTIVE_COLUMN,
    INTEGER_COLUMNS,
    PREDICTION_COLUMNS,
    RANGE_COLUMN,
    TEXT_COLUMNS,
)
from hyperbo.storage.printable import printable

# The last names the prior in the ledger of the machine that ran it.
OPTIONAL_COLUMNS = (*PREDICTION_COLUMNS, "prior")
REQUIRED_COLUMNS = (*COLUMNS, RANGE_COLUMN, INITIAL_COLUMN, INITIAL_OBJECTIVE_COLUMN)
_TEXTS = (*TEXT_COLUMNS, "prior")
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
# Of a name; the longest of the project's has some sixty characters.
_LONGEST_TEXT, _LONGEST_SHOWN = 300, 200
# Of a column of texts, in characters.
_LARGEST_COLUMN = 256 << 20


def unknown_columns(records: pd.DataFrame) -> list[str]:
    """The columns that the records of a bundle must have and have not, or may not have and have."""
    given = set(map(str, records.columns))
    return sorted((set(REQUIRED_COLUMNS) - given) | (given - {*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS}))


def packed(records: pd.DataFrame) -> bytes:
    """Records as a Parquet file. Equal records give equal bytes."""
    schema = pa.schema([(name, _type(name)) for name in records.columns])
    table = pa.Table.from_pandas(records, schema, preserve_index=False).replace_schema_metadata()
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none", store_schema=False)
    return buffer.getvalue()


def unpacked(content: bytes, most_rows: int, where: str) -> pd.DataFrame:
    """Read what `packed` wrote.

    Args:
      content: the file.
      most_rows: how many rows it may have.
      where: the place for messages.

    Raises:
      InvalidInputError: it is no Parquet file, has other columns, types or packing than those of a bundle,
        more rows, or longer texts.
    """
    try:
        return _unpacked(content, most_rows, where)
    except InvalidInputError:
        raise
    except Exception as error:  # Damaged files make Arrow and pandas fail in many ways.
        told = printable(error, _LONGEST_SHOWN)
        raise InvalidInputError(f"records cannot be read: {told}", where=where) from error


def _unpacked(content: bytes, most_rows: int, where: str) -> pd.DataFrame:
    found = pq.ParquetFile(io.BytesIO(content), read_dictionary=list(_TEXTS))
    described, schema = found.metadata, found.schema_arrow
    if len(set(schema.names)) != len(schema.names):
        raise InvalidInputError("two columns have one name", where=where)
    wrong = unknown_columns(pd.DataFrame(columns=schema.names))
    wrong += [name for name in schema.names if name not in wrong and not _fits(schema.field(name))]
    if wrong:
        told = printable(", ".join(wrong), _LONGEST_SHOWN)
        raise InvalidInputError(
            f"columns missing, unknown or of another type: {told}",
            where=where,
            fix=f"give {', '.join(REQUIRED_COLUMNS)}",
        )
    if described.num_rows > most_rows:
        raise InvalidInputError(
            f"{described.num_rows} rows are more than the {most_rows} that the metadata ask for", where=where
        )
    groups = [described.row_group(place) for place in range(described.num_row_groups)]
    columns = [group.column(place) for group in groups for place in range(group.num_columns)]
    if any(each.compression != "UNCOMPRESSED" or set(each.encodings) - _ENCODINGS for each in columns):
        raise InvalidInputError("the columns are packed as none of a bundle are", where=where)
    table = found.read()
    for name in set(_TEXTS) & set(schema.names):
        for chunk in table[name].chunks:
            longest = max(map(len, filter(None, chunk.dictionary.to_pylist())), default=0)
            if longest > _LONGEST_TEXT or longest * len(table) > _LARGEST_COLUMN:
                raise InvalidInputError(f"a text of {longest} characters in column {name}", where=where)
    plain = pa.schema([(name, _type(name)) for name in schema.names])
    return table.cast(plain).to_pandas(ignore_metadata=True)


def _type(name: str) -> pa.DataType:
    if name in _TEXTS:
        return pa.large_string()
    return pa.int64() if name in INTEGER_COLUMNS else pa.float64()


def _fits(field: pa.Field) -> bool:
    if field.name not in _TEXTS:
        return field.type.equals(_type(field.name))
    return pa.types.is_dictionary(field.type) and field.type.value_type in (pa.string(), pa.large_string())
