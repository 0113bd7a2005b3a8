"""What a stranger hands us is bounded: reading files of JSON, YAML and CSV, and SQLite databases."""

from __future__ import annotations

import csv
import io
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import json_value, shown

LARGEST_DOCUMENT = 1 << 30
LARGEST_YAML = 1 << 20
MOST_RUNS = 1_000_000
MOST_POINTS = 20_000_000
MOST_PARAMETERS = 1_000
LONGEST_NAME = 500
_T = TypeVar("_T")


class _PlainLoader(yaml.SafeLoader):
    """Reads YAML without aliases, by which a short file can stand for a huge value."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("an alias is not read")
        return super().compose_node(parent, index)


def read_bytes(path: Path, largest: int = LARGEST_DOCUMENT) -> bytes:
    """Read a whole file.

    Raises:
      InvalidInputError: there is no such file, it cannot be read, or it is too large.
    """
    try:
        size = path.stat().st_size
        if size > largest:
            raise InvalidInputError(
                f"the file has {size} bytes, and at most {largest} are read",
                where=str(path),
                fix="export fewer trials at once",
            )
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"cannot be read: {error.strerror}", where=str(path), fix="export it again"
        ) from error


def read_json(path: Path) -> Any:
    """Read a JSON document; a bare NaN and Infinity are allowed.

    Raises:
      InvalidInputError: it cannot be read, or is not JSON.
    """
    try:
        return json_value(read_bytes(path))
    except InvalidInputError as error:
        raise InvalidInputError(
            error.what, where=error.where or str(path), fix=error.fix or "export it again"
        ) from error


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a small YAML document that is a mapping.

    Raises:
      InvalidInputError: it cannot be read, is not YAML, has aliases, or is not a mapping.
    """
    content = read_bytes(path, LARGEST_YAML)
    try:
        found = yaml.load(content.decode("utf-8"), Loader=_PlainLoader)
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInputError(f"is not YAML: {reason}", where=str(path), fix="export it again") from error
    if not isinstance(found, dict):
        raise InvalidInputError("is not a table of fields", where=str(path), fix="export it again")
    return found


def csv_rows(text: str, where: str) -> Iterator[dict[str, str]]:
    """Read the rows of a CSV text with a header.

    Raises:
      InvalidInputError: it is not CSV, or a row has other cells than the header.
    """
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InvalidInputError(
                    "a row has other cells than the header",
                    where=f"{where}:{reader.line_num}",
                    fix="export it again",
                )
            yield row
    except csv.Error as error:
        raise InvalidInputError(f"is not CSV: {error}", where=where, fix="export it again") from error


@contextmanager
def sqlite_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite database to be read only; it is never created.

    Raises:
      InvalidInputError: there is no such file, it is no database, or it is damaged.
    """
    if not path.is_file():
        raise InvalidInputError("there is no such database", where=str(path), fix="give one that exists")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InvalidInputError(
            f"cannot be read as an SQLite database: {error}", where=str(path), fix="copy the file again"
        ) from error


def check_rows(connection: sqlite3.Connection, table: str, most: int, where: str) -> None:
    """Refuse a table that has too many rows to be read.

    Raises:
      InvalidInputError: it has more than `most`.
    """
    (count,) = connection.execute(f"select count(*) from {table}").fetchone()
    if count > most:
        raise InvalidInputError(
            f"the table {table} has {count} rows, and at most {most} are read",
            where=where,
            fix="copy a part of it to another database",
        )


def tables(connection: sqlite3.Connection) -> set[str]:
    """The names of the tables of a database."""
    return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


def member(values: Any, name: str, kind: type[_T], where: str) -> _T:
    """A field of a JSON object that must be there, of a type.

    Raises:
      InvalidInputError: it is missing, or of another type.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get(name), kind):
        found = shown(values.get(name)) if isinstance(values, Mapping) else "missing"
        raise InvalidInputError(
            f"{name} is {found}, not {kind.__name__}", where=where, fix="give the tool's own file, unchanged"
        )
    return values[name]


def name_text(value: Any, what: str, where: str) -> str:
    """A name of a study, a parameter or a metric: text that is not empty and not too long.

    Raises:
      InvalidInputError: it is not such a text.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME or not _is_utf8(value):
        raise InvalidInputError(
            f"{what} is {shown(value)}, not a name", where=where, fix=f"give 1 to {LONGEST_NAME} characters"
        )
    return value


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def number(value: Any) -> float:
    """A number as a float; NaN for anything else.

    >>> number(3), number("0.5"), number(None), number(True)
    (3.0, 0.5, nan, nan)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def epoch(text: Any) -> float:
    """A time of ISO 8601 as seconds since the epoch, UTC where it names no zone; NaN for anything else.

    >>> epoch("1970-01-01 00:01:00"), epoch(None)
    (60.0, nan)
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return math.nan


def literal(text: str) -> Any:
    """The plain value that a text stands for: a number, true or false, or the text.

    >>> [literal(each) for each in ("3", "1e-3", "True", "sgd", "1_000", "nan")]
    [3, 0.001, True, 'sgd', '1_000', 'nan']
    """
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    if "_" in text or not text.isascii() or not text.strip("+-").replace(".", "", 1)[:1].isdigit():
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
