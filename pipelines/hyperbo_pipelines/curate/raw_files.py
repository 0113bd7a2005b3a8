"""Raw files of lines: their hashes and row counts, and reading them as a whole or in chunks."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.elements import Chunk, RawFile

# Large enough that reading dominates the cost of a chunk, small enough that workers share a file evenly.
_CHUNK_BYTES = 16 << 20


def describe_file(path: Path, split: str, phase: int) -> RawFile:
    """Read a file of lines, gzipped if its name says so, and describe it: hash, size, number of rows, chunks.

    Raises:
      InvalidInputError: the file cannot be read, or its gzip stream is damaged or ends early.
    """
    chunks: list[Chunk] = []
    rows = offset = number = 0
    first, begin = 1, 0
    for number, line in _numbered(path, 0, 1):
        offset += len(line)
        rows += bool(line.strip())
        if offset - begin >= _CHUNK_BYTES:
            chunks.append(Chunk(begin, first, number + 1 - first))
            first, begin = number + 1, offset
    if number >= first:
        chunks.append(Chunk(begin, first, number + 1 - first))
    # A gzip stream can be read only from its beginning.
    divisible = tuple(chunks) if path.suffix != ".gz" else ()
    return raw_file(path, split, phase, rows, divisible)


def raw_file(
    path: Path, split: str = "", phase: int = 0, rows: int = 0, chunks: tuple[Chunk, ...] = ()
) -> RawFile:
    """Describe a file by its hash and size, and by what is known of its rows. Without rows: a companion."""
    return RawFile(path, split, phase, sha256_of(path), path.stat().st_size, rows, chunks)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_lines(path: Path, chunk: Chunk | None = None) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file or of a chunk of it that are not blank, with their numbers from 1.

    Raises:
      InvalidInputError: the file cannot be read, or its gzip stream is damaged or ends early; `where`
        is the file and the first line that could not be read.
    """
    begin = chunk or Chunk(0, 1, -1)
    lines = _numbered(path, begin.offset, begin.first)
    for number, line in lines if chunk is None else islice(lines, begin.lines):
        if line.strip():
            yield number, line


def _numbered(path: Path, offset: int, first: int) -> Iterator[tuple[int, bytes]]:
    number = first - 1
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            stream.seek(offset)
            for number, line in enumerate(stream, start=first):
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"cannot be read: {error}",
            where=f"{path.name}:{number + 1}",
            fix="fetch or write the file again",
        ) from error
