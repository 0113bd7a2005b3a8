"""Files of anyone's trials (JSON lines, CSV, Parquet): described, and read row by row."""

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
from hyperbo_pipelines.curate.columns import Kind
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.curate.fields import json_object, json_value
from hyperbo_pipelines.curate.raw_files import raw_file, read_lines
from hyperbo_pipelines.trials.description import TrialsDescription

SPLIT = "trials"
SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
# Rows of a Parquet file that are Python objects at once; with curves a row takes kilobytes.
_PARQUET_ROWS = 1024
# Characters; room for a curve of millions of points. A quote that is never closed is found by this bound.
_LONGEST_CELL = 1 << 26
_CELL_LIMIT = threading.Lock()
_AGAIN = "fetch or write the file again"


Row = dict[str, Any]


def suffix_of(path: Path) -> str:
    """The suffix of `SUFFIXES` that a file has; empty if it has none.

    >>> suffix_of(Path("study.v2.csv.gz")), suffix_of(Path("notes.txt"))
    ('.csv.gz', '')
    """
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), "")


def no_file(path: Path) -> InvalidInputError:
    """The error for a path that is no file: there is nothing, or a folder."""
    if path.is_dir():
        fix = f"name its files, such as {path}/*.csv"
        return InvalidInputError("this is a folder", where=str(path), fix=fix)
    return InvalidInputError("there is no such file", where=str(path), fix="give files that exist")


def column_names(path: Path) -> tuple[str, ...] | None:
    """The columns that a file declares for all rows; None for JSON lines, whose rows name their own.

    Raises:
      InvalidInputError: the file cannot be read, has no header, or names a column twice.
    """
    suffix = suffix_of(path)
    if suffix.startswith(".jsonl"):
        return None
    if suffix == ".parquet":
        names = tuple(open_parquet(path).schema_arrow.names)
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
    """Read the rows of a file: the place of each, and the row or its error.

    The place is the line at which a row begins, or in Parquet the number of the row, counted from 1. Only the
    given columns are read, but all from JSON lines. A CSV cell of a column of numbers stays text if it is not
    a number: the parser decides about it.

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
    """Rows that are not blank, with the line at which each begins: a quoted cell may hold line ends."""
    reader, number = None, 1
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            # A byte that is not UTF-8 becomes a surrogate: only its own row is rejected.
            lines: Iterable[str] = io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
            reader = csv.reader(lines, strict=True)
            while (record := next_record(reader)) is not None:
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


def next_record(reader: Iterator[list[str]]) -> list[str] | None:
    """The next row, whose cells may be longer than Python's default limit; None at the end.

    The limit is global to the process, so it is set under a lock and restored.
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
    """The value of a cell; None if it is empty.

    >>> _cell("0.1", "real"), _cell("", "real"), _cell("abc", "real"), _cell("[1, null]", "reals")
    (0.1, None, 'abc', [1, None])
    """
    if not cell:
        return None
    try:
        if kind == "reals":
            return json_value(cell.encode())
        # Python's float also accepts 1_000 and digits of other scripts; other readers do not.
        return cell if kind == "text" or "_" in cell or not cell.isascii() else float(cell)
    except ValueError:
        return cell


def _parquet_rows(path: Path, columns: list[str]) -> Iterator[tuple[int, Row]]:
    number = 0
    file = open_parquet(path)
    try:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=f"{path.name}:{number + 1}", fix=_AGAIN
        ) from error


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
      InvalidInputError: the file cannot be read as Parquet.
    """
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"cannot be read as Parquet: {error}", where=path.name, fix=_AGAIN) from error


def find_trial_files(paths: Sequence[Path], description: TrialsDescription) -> tuple[RawFile, ...]:
    """Read each file once, and describe it.

    Args:
      paths: files of JSON lines, CSV (both gzipped or not) or Parquet, by suffix.
      description: the meaning of their columns.

    Returns:
      The files, sorted by name; rows that the description skips are not counted.

    Raises:
      InvalidInputError: a file is absent, of another kind, unreadable, cut short, or has other columns; its
        name is not UTF-8; two files have one name; or the files have no rows.
    """
    by_name: dict[str, Path] = {}
    for path in paths:
        if not path.is_file():
            raise no_file(path)
        require_kind(path)
        if path.name in by_name:
            raise InvalidInputError(
                f"two files have the name {path.name}: {by_name[path.name]} and {path}",
                fix="rename one: a record names the file it was read from",
            )
        by_name[path.name] = path
    files = tuple(_describe(path, description) for _, path in sorted(by_name.items()))
    if not any(file.rows for file in files):
        raise InvalidInputError("there is no trial", where=", ".join(by_name), fix="give files with rows")
    return files


def require_kind(path: Path) -> None:
    """Check, by its name, that a file is of a kind that is read.

    Raises:
      InvalidInputError: it is not, or its name is not UTF-8.
    """
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "the name of the file is not UTF-8",
            where=str(path).encode("utf-8", "backslashreplace").decode("utf-8"),
            fix="rename it: a record names the file it was read from",
        ) from error
    if not suffix_of(path):
        raise InvalidInputError(
            "not a kind of file that is read", where=str(path), fix=f"give {', '.join(SUFFIXES)}"
        )


def _describe(path: Path, description: TrialsDescription) -> RawFile:
    names = column_names(path)
    if names is not None:
        try:
            description.check_columns(names)
        except InvalidInputError as error:
            raise InvalidInputError(error.what, where=path.name, fix=error.fix) from error
    # All columns are read, so that an unreadable one is found before a pipeline runs.
    rows = read_rows(path, description.columns)
    status = description.status
    count = sum(isinstance(row, InvalidInputError) or not (status and status.skips(row)) for _, row in rows)
    return raw_file(path, SPLIT, rows=count)
