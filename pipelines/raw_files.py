"""Finding and reading raw files: their names, lines, hashes and row counts."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from hyperbo.errors import InvalidInputError
from pipelines.records import Chunk, RawFile

# Large enough that a chunk's cost is its rows, small enough that a few workers share a file evenly.
_CHUNK_BYTES = 16 << 20
# What is added to a release has a part of its own behind `results`: files of several sources fit together.
_NAME = re.compile(r"pd1_(matched|unmatched)_phase([01])_results(-[A-Za-z0-9_.-]+?)?\.jsonl(\.gz)?")

_EXPECTED = "expected pd1_{matched,unmatched}_phase{0,1}_results.jsonl, or .jsonl.gz"


def find_raw_files(folder: Path) -> tuple[RawFile, ...]:
    """Find the files of the PD1 release's layout in a folder; errors as `describe_raw_files`.

    Other files of the folder are left alone.

    Args:
      folder: holds `pd1_{matched,unmatched}_phase{0,1}_results.jsonl[.gz]`; some may be absent.

    Returns:
      The files, sorted by name.
    """
    if not folder.is_dir():
        raise InvalidInputError(
            "no such folder of raw files", where=str(folder), fix="give a folder that exists"
        )
    return describe_raw_files([path for path in sorted(folder.iterdir()) if is_raw_file(path)], str(folder))


def is_raw_file(path: Path) -> bool:
    """Whether a file is one of the PD1 release's layout, by its name.

    `pd1_unmatched_phase0_results-online.jsonl` is one too: it adds trials to a release.
    """
    return _NAME.fullmatch(path.name) is not None


def is_addition(path: Path) -> bool:
    """Whether a file, by its name, adds trials to a release of the PD1 layout, and is none of its own."""
    name = _NAME.fullmatch(path.name)
    return name is not None and name[3] is not None


def describe_raw_files(paths: Sequence[Path], where: str) -> tuple[RawFile, ...]:
    """Read each of some files of the PD1 release's layout once, and describe it.

    Reading here, before any pipeline runs, stops a build early on a file that cannot be read, and counts rows
    independently of the parser.

    Args:
      paths: the files.
      where: their place, for messages.

    Returns:
      The files, sorted by name.

    Raises:
      InvalidInputError: there is no file, a file comes twice, or one is unreadable or cut short.
    """
    files, seen = [], dict[str, Path]()
    for path in sorted(paths, key=lambda path: path.name):
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise InvalidInputError("not named as raw files are", where=str(path), fix=_EXPECTED)
        other = seen.setdefault(path.name.removesuffix(".gz"), path)
        if other != path:
            raise InvalidInputError(
                f"the same trials come twice, as {other.name} and {path.name}",
                where=where,
                fix="remove one of the two",
            )
        files.append(_describe(path, name[1], int(name[2])))
    if not files:
        raise InvalidInputError("no raw file found", where=where, fix=_EXPECTED)
    if not any(file.rows for file in files):
        raise InvalidInputError("the raw files have no rows", where=where)
    return tuple(files)


def _describe(path: Path, split: str, phase: int) -> RawFile:
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
    # A gzip stream has no middle to start from: it is one piece of work.
    divisible = tuple(chunks) if path.suffix != ".gz" else ()
    return RawFile(path, split, phase, sha256_of(path), path.stat().st_size, rows, divisible)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_lines(path: Path, chunk: Chunk | None = None) -> Iterator[tuple[int, bytes]]:
    """Read the lines that are not blank, with their numbers from 1.

    Args:
      path: the file, gzipped if its name says so.
      chunk: the lines to read; None for all.

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
