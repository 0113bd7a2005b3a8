"""Which rows of new files are known: those that a file before them holds, too."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo.data.trial import Trial, validate
from hyperbo.errors import InvalidInputError
from hyperbo.storage.printable import count
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.curate.fields import shown
from hyperbo_pipelines.curate.relations import trial_key
from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.parse import parse_file
from hyperbo_pipelines.trials.row_bytes import bytes_of_rows
from hyperbo_pipelines.trials.rows import SPLIT

# Without ids, a file of which this share recurs in another is an overlap. A few equal rows are no sign: a
# training without randomness gives the same result again.
_OVERLAP = 0.5
# Half of a SHA-256, because there is one for every row in memory.
_DIGEST = 16


@dataclass(frozen=True)
class SortedRows:
    """The rows of a new file, sorted into those that are known and those that are new.

    Attributes:
      path: the file.
      known: number of the rows that are known.
      trials: number of the new rows that are trials.
      rejects: number of the new rows that are rejects.
      new: places of the new rows, trials and rejects; None where no row is known.
    """

    path: Path
    known: int
    trials: int
    rejects: int
    new: frozenset[int] | None


def sort_rows(
    recorded: Sequence[Path], files: Sequence[Path], description: TrialsDescription
) -> tuple[SortedRows, ...]:
    """Sort the rows of new files into known and new ones.

    A row is known if a row before it has the same trial id and the same values, wherever it was read: in a
    file that is recorded, in a new file before it, or in its own file. A row that cannot be a record is known
    if the same row was a reject before. Rows that the description skips are neither known nor new.

    Where the description names no trial id, every row is new, and files must not overlap.

    Args:
      recorded: the files that are recorded; their rows are not sorted.
      files: the new files, in the order in which they count.
      description: the meaning of the columns.

    Returns:
      The sorted rows of each new file.

    Raises:
      InvalidInputError: a row has a trial id of a row before it, and another value: names both rows, the
        field and both values. Or there are no trial ids, and a new file repeats a file before it. Or a file
        cannot be read.
    """
    if not description.trial_id:
        return tuple(_without_ids(recorded, files, description))
    seen = _Seen(description)
    for path in recorded:
        seen.add(path)
    return tuple(map(seen.sort, files))


class _Seen:
    """The rows of all files so far, by digests: a few hundred bytes for each."""

    def __init__(self, description: TrialsDescription) -> None:
        self._description = description
        # The files and how messages name them.
        self._files: dict[Path, str] = {}
        self._trials: set[bytes] = set()
        self._ids: set[str] = set()
        self._rejects: Counter[bytes] = Counter()

    def add(self, path: Path) -> None:
        """Take in a file that is recorded."""
        wrong: set[int] = set()
        for place, row in _rows(path, self._description):
            if isinstance(row, Trial) and _is_valid(row, self._description):
                self._ids.add(row.trial_id)
                self._trials.add(_digest(row))
            else:
                wrong.add(place)
        self._files[path] = f"{path.parent.name}/{path.name}"
        if wrong:
            self._rejects.update(_half_sha256(row) for _, row in bytes_of_rows(path, wrong))

    def sort(self, path: Path) -> SortedRows:
        """Sort the rows of a new file, and take it in."""
        new: set[int] = set()
        wrong: set[int] = set()
        first: Trial | None = None
        rows = changed = 0
        self._files[path] = path.name
        for place, row in _rows(path, self._description):
            rows += 1
            if not isinstance(row, Trial):
                wrong.add(place)
            elif (digest := _digest(row)) in self._trials:
                continue
            elif row.trial_id in self._ids:
                first = first or row
                changed += 1
            elif not _is_valid(row, self._description):
                wrong.add(place)
            else:
                self._ids.add(row.trial_id)
                self._trials.add(digest)
                new.add(place)
        if first:
            raise self._refusal(first, changed - 1)
        trials = len(new)
        if wrong:
            here: Counter[bytes] = Counter()
            for place, row in bytes_of_rows(path, wrong):
                here[digest := _half_sha256(row)] += 1
                # The second of two equal rejects is known only if two were recorded.
                if here[digest] > self._rejects[digest]:
                    new.add(place)
            self._rejects |= here
        known = rows - len(new)
        return SortedRows(path, known, trials, len(new) - trials, frozenset(new) if known else None)

    def _refusal(self, row: Trial, more: int) -> InvalidInputError:
        """The error that names the first changed row, the row before it, and a field that differs."""
        earlier, where = next(
            (each, f"{name}:{place}")
            for path, name in self._files.items()
            for place, each in _rows(path, self._description)
            if isinstance(each, Trial)
            and each.trial_id == row.trial_id
            and _is_valid(each, self._description)
        )
        field, new, old = _difference(row, earlier)
        others = f"; {count(more, 'more row')} of the file changed, too" if more else ""
        return InvalidInputError(
            f"{field} of the trial {row.trial_id!r} is {shown(new)}, and {shown(old)} at {where}{others}",
            where=row.source,
            fix="nothing was published: correct the export, or give the trial another id",
        )


def _rows(path: Path, description: TrialsDescription) -> Iterator[tuple[int, Trial | Reject]]:
    """The rows of a file, with their places."""
    for row in parse_file(RawFile(path, SPLIT, 0, "", 0, 0), description, ""):
        yield row.line if isinstance(row, Reject) else int(row.source.rpartition(":")[2]), row


def _is_valid(trial: Trial, description: TrialsDescription) -> bool:
    try:
        validate(trial, description.space)
    except InvalidInputError:
        return False
    return True


def _digest(trial: Trial) -> bytes:
    return bytes.fromhex(trial_key(trial).fingerprint)[:_DIGEST]


def _half_sha256(row: bytes) -> bytes:
    return hashlib.sha256(row).digest()[:_DIGEST]


def _difference(row: Trial, earlier: Trial) -> tuple[str, Any, Any]:
    """The first field in which two trials of one id differ, and its values."""
    for field in dataclasses.fields(Trial):
        new, old = getattr(row, field.name), getattr(earlier, field.name)
        if field.name in ("metrics", "hyperparameters", "curves"):
            for name in {**new, **old}:
                # An empty curve counts as none; an inactive hyperparameter has no value.
                none = () if field.name == "curves" else None
                values = new.get(name, none), old.get(name, none)
                if repr(values[0]) != repr(values[1]):
                    return f"{field.name}.{name}", *values
        elif field.name not in ("source", "input_id") and new != old:
            return field.name, new, old
    raise AssertionError("the trials do not differ")


def _without_ids(
    recorded: Sequence[Path], files: Sequence[Path], description: TrialsDescription
) -> Iterator[SortedRows]:
    """All rows as new ones; a file that repeats a file before it is refused."""
    file_of: dict[bytes, Path] = {}
    for path in recorded:
        for digest in _anonymous(path, description)[0]:
            file_of.setdefault(digest, path)
    sizes = Counter(file_of.values())
    for path in files:
        digests, rejects = _anonymous(path, description)
        recurring = digests.keys() & file_of.keys()
        if recurring:
            other, repeated = Counter(file_of[digest] for digest in sorted(recurring)).most_common(1)[0]
            total = sum(digests[digest] for digest in recurring)
            if total >= _OVERLAP * digests.total() or repeated >= _OVERLAP * sizes[other]:
                raise InvalidInputError(
                    f"{total} of {count(digests.total(), 'trial')} are trials of {other.name} again, and "
                    "without trial ids nothing tells which rows are new",
                    where=path.name,
                    fix="name the column of ids as trial_id in the space file, or give new rows only",
                )
        file_of |= dict.fromkeys(digests.keys() - recurring, path)
        sizes[path] = len(digests) - len(recurring)
        yield SortedRows(path, 0, digests.total(), rejects, None)


def _anonymous(path: Path, description: TrialsDescription) -> tuple[Counter[bytes], int]:
    """How often each trial of a file occurs there, by its digest without an id; and the number of rejects."""
    digests: Counter[bytes] = Counter()
    rejects = 0
    for _, row in _rows(path, description):
        if isinstance(row, Trial):
            digests[_digest(dataclasses.replace(row, trial_id=""))] += 1
        else:
            rejects += 1
    return digests, rejects
