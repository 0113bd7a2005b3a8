"""Finding files of anyone's trials: their columns, row counts and hashes, before any pipeline runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hyperbo.errors import InvalidInputError
from pipelines.raw_files import sha256_of
from pipelines.records import RawFile
from pipelines.trials.description import TrialsDescription
from pipelines.trials.rows import SUFFIXES, column_names, read_rows, suffix_of

SPLIT = "trials"


def find_trial_files(paths: Sequence[Path], description: TrialsDescription) -> tuple[RawFile, ...]:
    """Read each file once, and describe it.

    Args:
      paths: files of JSON lines, CSV (both gzipped or not) or Parquet, told apart by suffix.
      description: what their columns mean.

    Returns:
      The files, sorted by name; their rows without those that the description skips.

    Raises:
      InvalidInputError: a file is absent, of another kind, unreadable, cut short, or has other columns; its
        name is not UTF-8; two have one name; or there is no row in all.
    """
    by_name: dict[str, Path] = {}
    for path in paths:
        if not path.is_file():
            raise InvalidInputError("no such file", where=str(path), fix="give files that exist")
        _require_utf8(path)
        if not suffix_of(path):
            raise InvalidInputError(
                "not a kind of file that is read", where=str(path), fix=f"give {', '.join(SUFFIXES)}"
            )
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


def _require_utf8(path: Path) -> None:
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "the name of the file is not UTF-8",
            where=str(path).encode("utf-8", "backslashreplace").decode("utf-8"),
            fix="rename it: a record names the file it was read from",
        ) from error


def _describe(path: Path, description: TrialsDescription) -> RawFile:
    names = column_names(path)
    if names is not None:
        try:
            description.check_columns(names)
        except InvalidInputError as error:
            raise InvalidInputError(error.what, where=path.name, fix=error.fix) from error
    return RawFile(path, SPLIT, 0, sha256_of(path), path.stat().st_size, _count(path, description))


def _count(path: Path, description: TrialsDescription) -> int:
    # All columns are read, though few are needed: one that cannot be should not stop a pipeline that runs.
    rows = read_rows(path, description.columns)
    status = description.status
    return sum(isinstance(row, InvalidInputError) or not (status and status.skips(row)) for _, row in rows)
