"""Reading a file of HPO-B as a stream: the raw rows of one dataset after another."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import ijson
import numpy as np

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.hpob.raw_files import read_pieces

# Larger pieces are no faster, and the events of a piece are in memory at once.
_PIECE = 1 << 16
# Numbers that Python's json writes but JSON or float64 cannot hold: NaN, Infinity, large exponents.
_NO_NUMBER = re.compile(rb"(?<![^\[,:\s])(-?(?:NaN|Infinity|[\d.]+[eE]\+?\d{3,}))(?=[\],}\s])")
_ID = re.compile(r"[\w.-]+")
Events = Iterator[tuple[str, Any]]


class Rows(NamedTuple):
    """Rows of numbers as one flat array.

    Attributes:
      values: the entries of all rows; NaN for an entry that is not a number.
      ends: index behind the last entry of each row.
      wrong: by row, column and value of its first entry that is not a number.
    """

    values: np.ndarray
    ends: np.ndarray
    wrong: dict[int, tuple[int, Any]]


class RawDataset(NamedTuple):
    """The raw rows of one dataset of a search space; `x` and `y` have equally many rows."""

    search_space: str
    dataset: str
    x: Rows
    y: Rows


def read_datasets(path: Path, search_space: str | None = None) -> Iterator[RawDataset]:
    """Read a file, plain or gzipped, one dataset in memory at a time.

    Its layout is {search space: {dataset: {"X": [[...]], "y": [[...]]}}}. With a search space, only this one
    is read.

    Raises:
      InvalidInputError: the file cannot be read, is not JSON, is cut short or has another layout; a dataset
        comes twice, or its X and y have different numbers of rows. `where` is the file and the dataset.
    """
    place = path.name
    seen: set[tuple[str, str]] = set()
    events = chain.from_iterable(_batches(path))
    try:
        _expect(next(events), "start_map", "the file")
        for space in _keys(events, "the file"):
            place = f"{path.name}#{space}"
            if search_space not in (None, space):
                _pass_over(events)
                continue
            _expect(next(events), "start_map", "the search space")
            for dataset in _keys(events, "the search space"):
                place = f"{path.name}#{space}/{dataset}"
                if (space, dataset) in seen:
                    raise InvalidInputError(f"dataset {dataset} comes twice", fix="remove one of the two")
                seen.add((space, dataset))
                yield RawDataset(space, dataset, *_read_dataset(events))
        place = path.name
        for _ in events:  # Nothing may follow; the parser checks it.
            pass
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=place, fix=error.fix) from error


def _batches(path: Path) -> Iterator[list[tuple[str, Any]]]:
    events: Any = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, use_float=True)
    try:
        # Pieces end with a comma: no number is cut in two.
        for piece in read_pieces(path, _PIECE, b","):
            parser.send(_quoted(piece))
            yield events
            events.clear()
        parser.close()
    except ijson.JSONError as error:
        yield events  # The events before the error tell which dataset it is in.
        text = error.args[0] if error.args else ""
        text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise InvalidInputError(
            f"is not JSON or is cut short: {text.splitlines()[0] if text else 'no reason given'}",
            fix="fetch or write the file again",
        ) from error


def _quoted(piece: bytes) -> bytes:
    """Quote entries that are not numbers, so that they cost one row and not the whole file.

    >>> _quoted(b"[NaN, 0.5, 1e999, 2e-05]")
    b'["NaN", 0.5, "1e999", 2e-05]'
    """
    # Most pieces have an e in small numbers only, such as 2e-05: then nothing is to be quoted.
    if b"N" in piece or b"I" in piece or b"E" in piece or piece.count(b"e") != piece.count(b"e-"):
        return _NO_NUMBER.sub(rb'"\1"', piece)
    return piece


def _expect(event: tuple[str, Any], kind: str, what: str) -> None:
    if event[0] != kind:
        wanted = {"start_map": "an object", "start_array": "an array"}[kind]
        raise InvalidInputError(f"{what} is {_shown(event)}, not {wanted}")


def _keys(events: Events, what: str) -> Iterator[str]:
    """The keys of an object that has begun; the caller reads their values."""
    for event, key in events:
        if event == "end_map":
            return
        if not _ID.fullmatch(key):
            raise InvalidInputError(f"{what} has the key {key!r}, not an id")
        yield key


def _pass_over(events: Events) -> None:
    depth = 0
    for event, _ in events:
        if event in ("start_map", "start_array"):
            depth += 1
        elif event in ("end_map", "end_array"):
            depth -= 1
        if not depth:
            return


def _read_dataset(events: Events) -> tuple[Rows, Rows]:
    _expect(next(events), "start_map", "the dataset")
    members: dict[str, Rows] = {}
    for name in _keys(events, "the dataset"):
        if name not in ("X", "y") or name in members:
            raise InvalidInputError(f"the dataset has the field {name} besides X and y, each once")
        _expect(next(events), "start_array", name)
        members[name] = _read_rows(events, name)
    missing = [name for name in ("X", "y") if name not in members]
    if missing:
        raise InvalidInputError(f"the dataset has no {' and no '.join(missing)}")
    x, y = members["X"], members["y"]
    if len(x.ends) != len(y.ends):
        raise InvalidInputError(f"X has {len(x.ends)} rows, y has {len(y.ends)}")
    return x, y


def _read_rows(events: Events, name: str) -> Rows:
    """Read an array of arrays that has begun. Most of the time is spent in this loop."""
    values, ends, wrong = array("d"), array("q"), {}
    append = values.append
    for event, value in events:
        if event == "end_array":
            break
        _expect((event, value), "start_array", f"{name}[{len(ends)}]")
        for event, value in events:
            if event == "number":
                append(value)
            elif event == "end_array":
                break
            elif event in ("string", "boolean", "null"):
                wrong.setdefault(len(ends), (len(values) - (ends[-1] if ends else 0), value))
                append(float("nan"))
            else:
                raise InvalidInputError(f"{name}[{len(ends)}] has an entry that is {_shown((event, value))}")
        ends.append(len(values))
    return Rows(np.frombuffer(values), np.frombuffer(ends, np.int64), wrong)


def _shown(event: tuple[str, Any]) -> str:
    kind, value = event
    return {"start_map": "an object", "start_array": "an array"}.get(kind, repr(value)[:60])
