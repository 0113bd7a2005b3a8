"""Rows of files of trials as they are written there, and files with some of the rows of another."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo_pipelines.curate.raw_files import read_lines
from hyperbo_pipelines.trials.rows import next_record, open_parquet, suffix_of

_PARQUET_ROWS = 1024


def bytes_of_rows(path: Path, places: Container[int]) -> Iterator[tuple[int, bytes]]:
    """The rows of a file at some places, as `read_rows` counts them: place and bytes, without the line's end.

    A row of Parquet is Python's text of its values.
    """
    if suffix_of(path) == ".parquet":
        number = 0
        with open_parquet(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    if number in places:
                        yield number, repr(row).encode("utf-8", "surrogatepass")
        return
    for place, row in _written_rows(path):
        if place in places:
            yield place, row.rstrip(b"\r\n")


def copy_rows(path: Path, places: Container[int], target: Path) -> None:
    """Write the rows of a file at some places to a file of the same kind, byte for byte as they are.

    A CSV file keeps its header. Equal rows make equal files.
    """
    if suffix_of(path) == ".parquet":
        _copy_parquet_rows(path, places, target)
        return
    rows = _written_rows(path)
    header = islice(rows, 1) if suffix_of(path).startswith(".csv") else ()
    with target.open("wb") as stream:
        if target.suffix != ".gz":
            _write_rows(chain(header, (each for each in rows if each[0] in places)), stream)
            return
        # Without a name and a time, which would differ.
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
            _write_rows(chain(header, (each for each in rows if each[0] in places)), packed)


def _write_rows(rows: Iterable[tuple[int, bytes]], stream: IO[bytes] | gzip.GzipFile) -> None:
    for _, row in rows:
        stream.write(row if row.endswith((b"\n", b"\r")) else row + b"\n")


def _copy_parquet_rows(path: Path, places: Container[int], target: Path) -> None:
    number = 0
    with open_parquet(path) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
            wanted = [place in places for place in range(number + 1, number + 1 + batch.num_rows)]
            number += batch.num_rows
            if any(wanted):
                writer.write_batch(batch.take(pa.array(np.flatnonzero(wanted))))


def _written_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """All rows of a file of text that are not blank: the first line of each, and its bytes."""
    return _csv_rows(path) if suffix_of(path).startswith(".csv") else read_lines(path)


def _csv_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    taken: list[str] = []

    def taking(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        # The reader takes as many lines as a row has. Bytes that are not UTF-8 survive as surrogates.
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader, number = csv.reader(taking(text), strict=True), 1
        while (record := next_record(reader)) is not None:
            if record:
                yield number, "".join(taken).encode("utf-8", "surrogateescape")
            number = reader.line_num + 1
            taken.clear()
