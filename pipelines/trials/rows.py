"""Rows of JSON lines, CSV and Parquet files, each as a mapping from columns to plain values."""

from __future__ import annotations

import csv
import gzip
import io
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError
from pipelines.columns import Kind
from pipelines.json_lines import json_object, json_value
from pipelines.raw_files import read_lines

SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
# Rows of a Parquet file that are held as Python objects at once; with curves a row is kilobytes.
_PARQUET_ROWS = 1024
# Characters: a curve of millions of points. Without a bound, a quote never closed would take in all the file.
_LONGEST_CELL = 1 << 26
_CELL_LIMIT = threading.Lock()
_AGAIN = "fetch or write the file again"

Row = dict[str, Any]


def suffix_of(path: Path) -> str:
    """The suffix by which a file is read; empty where there is none such.

    >>> suffix_of(Path("study.v2.csv.gz")), suffix_of(Path("notes.txt"))
    ('.csv.gz', '')
    """
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), "")


def column_names(path: Path) -> tuple[str, ...] | None:
    """The columns that a file declares for all its rows; None for JSON lines, whose rows bring their own.

    Raises:
      InvalidInputError: the file cannot be read, has no header, or names a column twice.
    """
    suffix = suffix_of(path)
    if suffix.startswith(".jsonl"):
        return None
    if suffix == ".parquet":
        names = tuple(_open_parquet(path).schema_arrow.names)
    else:
        _, header = next(_csv_records(path), (1, ()))
        names = tuple(header)
    if not names:
        raise InvalidInputError("the file names no columns", where=path.name, fix="write a header first")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"the column {name!r} comes twice", where=path.name, fix="rename one")
        if not _is_utf8(name):
            raise InvalidInputError("the header is not UTF-8", where=f"{path.name}:1", fix=_AGAIN)
    return names


def read_rows(path: Path, columns: Mapping[str, Kind]) -> Iterator[tuple[int, Row | InvalidInputError]]:
    """Read the rows of a file, with their places.

    The place is the line at which a row begins, from 1, or in Parquet the number of the row, from 1. Where a
    CSV cell of numbers spells no number it stays text: what to make of it is not for this module to say.

    Args:
      path: the file, of a suffix of `SUFFIXES`.
      columns: what each column holds that is wanted; of JSON lines all come.

    Yields:
      The place of a row, and the row, or what is wrong with it.

    Raises:
      InvalidInputError: the file itself cannot be read.
    """
    suffix = suffix_of(path)
    if suffix.startswith(".jsonl"):
        yield from _json_rows(path)
    elif suffix == ".parquet":
        yield from _parquet_rows(path, list(columns))
    else:
        yield from _csv_rows(path, columns)


def _json_rows(path: Path) -> Iterator[tuple[int, Row | InvalidInputError]]:
    for number, line in read_lines(path):
        try:
            yield number, json_object(line)
        except InvalidInputError as error:
            yield number, error


def _csv_rows(path: Path, columns: Mapping[str, Kind]) -> Iterator[tuple[int, Row | InvalidInputError]]:
    records = _csv_records(path)
    _, header = next(records, (1, ()))
    wanted: list[tuple[int, str, Kind]] = [
        (place, name, columns[name]) for place, name in enumerate(header) if name in columns
    ]
    for number, cells in records:
        if len(cells) != len(header):
            yield number, InvalidInputError(f"has {len(cells)} cells, and the header has {len(header)}")
        elif not all(map(_is_utf8, cells)):
            name = next(name for name, cell in zip(header, cells, strict=True) if not _is_utf8(cell))
            yield number, InvalidInputError(f"{name} is not UTF-8")
        else:
            yield number, {name: _cell(cells[place], kind) for place, name, kind in wanted}


def _csv_records(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """Records that are not blank, with the line at which each begins: a quoted cell may hold line ends."""
    reader, number = None, 1
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            # A byte that is not UTF-8 becomes a surrogate: found in its row, it costs no other row.
            lines: Iterable[str] = io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
            reader = csv.reader(lines, strict=True)
            while (record := _next_record(reader)) is not None:
                if record:
                    yield number, record
                number = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInputError(
            f"is not CSV: {error}", where=f"{path.name}:{number}", fix="mend the row, or write JSON lines"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=f"{path.name}:{number}", fix=_AGAIN
        ) from error


def _next_record(reader: Iterator[list[str]]) -> list[str] | None:
    """The next record, whose cells may be longer than Python allows; None at the end.

    Python's limit is one for the whole process: others find it as they left it, no two threads change it.
    """
    with _CELL_LIMIT:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(before)


def _is_utf8(cell: str) -> bool:
    return cell.isascii() or not any("\ud800" <= character <= "\udfff" for character in cell)


def _cell(cell: str, kind: Kind) -> Any:
    """What a cell holds; an empty one holds nothing.

    >>> _cell("0.1", "real"), _cell("", "real"), _cell("abc", "real"), _cell("[1, null]", "reals")
    (0.1, None, 'abc', [1, None])
    """
    if not cell:
        return None
    try:
        if kind == "reals":
            return json_value(cell.encode())
        # Python's float also reads 1_000 and digits of other scripts, which no other reader would.
        return cell if kind == "text" or "_" in cell or not cell.isascii() else float(cell)
    except ValueError:
        return cell


def _parquet_rows(path: Path, columns: list[str]) -> Iterator[tuple[int, Row]]:
    number = 0
    file = _open_parquet(path)
    try:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=f"{path.name}:{number + 1}", fix=_AGAIN
        ) from error


def _open_parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"cannot be read as Parquet: {error}", where=path.name, fix=_AGAIN) from error
