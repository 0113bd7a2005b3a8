"""What differs between two versions: records, fields, splits and declarations. Needs Parquet only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest
from pd1_builder.preparations import sorted_codes
from pd1_builder.stored_records import Rows, StoredRecords, differing, pair

# Where a record was read is not what it says, and x and y follow from raw values and declarations.
_NOT_COMPARED = ("trial_id", "source", "y", "x")
# What a record is to others: adding a task to matched inputs renames the block of every record in it.
_RELATIONS = ("block", "duplicates")
_EXAMPLES = 3
Bump = Literal["major", "minor", "patch"]


class Changes(NamedTuple):
    """What changed, in phrases for people.

    Attributes:
      breaking: records changed or removed, fields or splits removed, other declarations.
      additions: records, fields or splits added.
    """

    breaking: tuple[str, ...] = ()
    additions: tuple[str, ...] = ()

    @property
    def bump(self) -> Bump:
        """The first component of the number that has to differ from the parent's.

        >>> Changes(additions=("3 records added",)).bump
        'minor'
        """
        return "major" if self.breaking else "minor" if self.additions else "patch"


class Example(NamedTuple):
    """A trial with the old and the new value of a field."""

    trial_id: str
    old: Any
    new: Any


class FieldChange(NamedTuple):
    """Records of one task, by its name in the parent, in which one field changed; and the first few."""

    task: str
    field: str
    records: int
    examples: tuple[Example, ...]

    @property
    def example(self) -> str:
        """The first example in few characters."""
        first = self.examples[0]
        return f"{first.trial_id}: {_shorten(first.old)} -> {_shorten(first.new)}"


@dataclass(frozen=True)
class Diff:
    """What differs from one version, the parent, to another. Records are the same if their trial ids are.

    Floats are compared by their bits, as in the content hash: 0.0 and -0.0 differ. All NaNs are equal.

    Attributes:
      parent: manifest of the parent.
      manifest: manifest of the other version.
      added: number of records that only the other version has, by split and task.
      removed: number of records that only the parent has, by split and task.
      changed: fields that changed, by task. Moving to another split is a change of the field `split`.
      relations: number of records whose `block` or `duplicates` changed; no matter of the number.
      fields_added: columns that only the other version has.
      fields_removed: columns that only the parent has. A column of another type is removed and added.
      splits_added: splits that only the other version has.
      splits_removed: splits that only the parent has.
      declared: declared parameters, objective or warping that differ, old and new, as texts; empty for none.
    """

    parent: Manifest
    manifest: Manifest
    added: Mapping[tuple[str, str], int] = field(default_factory=dict)
    removed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    changed: tuple[FieldChange, ...] = ()
    relations: Mapping[str, int] = field(default_factory=dict)
    fields_added: tuple[str, ...] = ()
    fields_removed: tuple[str, ...] = ()
    splits_added: tuple[str, ...] = ()
    splits_removed: tuple[str, ...] = ()
    declared: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def changes(self) -> Changes:
        """The differences as phrases, breaking ones apart from additions."""
        return Changes(
            breaking=(
                *_counted(self.removed, "removed"),
                *_first(map(_phrase, self.changed)),
                *(f"field {name} removed" for name in self.fields_removed),
                *(f"split {name} removed" for name in self.splits_removed),
                *(
                    f"declared {name} is {new or 'gone'}, was {old or 'not there'}"
                    for name, (old, new) in self.declared.items()
                ),
            ),
            additions=(
                *_counted(self.added, "added"),
                *(f"field {name} added" for name in self.fields_added),
                *(f"split {name} added" for name in self.splits_added),
            ),
        )

    @property
    def bump(self) -> Bump:
        """The first component of the number that has to differ from the parent's."""
        return self.changes.bump


def diff(parent: str, reference: str, data_dir: Path | None = None) -> Diff:
    """Compare two versions.

    Args:
      parent: `<name>/<config>:<version>`; without a version, the newest there is.
      reference: the version compared with it.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.

    Raises:
      NotAvailableError: there is no such version.
      VersionConflictError: a version's files are not those of its manifest.
    """
    return diff_folders(find(parent, data_dir).folder, find(reference, data_dir).folder)


def diff_folders(parent: Path, folder: Path) -> Diff:
    """Compare the versions in two folders; at once where their content hashes are equal.

    Raises:
      NotAvailableError: a folder holds no version.
      VersionConflictError: a version's files are not those of its manifest, or a trial id repeats in it.
    """
    old, new = StoredRecords(parent), StoredRecords(folder)
    if old.manifest.content_hash == new.manifest.content_hash:
        return Diff(old.manifest, new.manifest)
    old_types, new_types = old.column_types(), new.column_types()
    shared = tuple(name for name, type_name in old_types.items() if new_types.get(name) == type_name)
    old_rows, new_rows = pair(old, new)
    changed, relations = _compare(old, new, old_rows, new_rows, shared)
    old_declared, new_declared = _declared(old.manifest), _declared(new.manifest)
    return Diff(
        old.manifest,
        new.manifest,
        added=new.count_others(new_rows),
        removed=old.count_others(old_rows),
        changed=changed,
        relations=relations,
        fields_added=tuple(name for name in new_types if name not in shared),
        fields_removed=tuple(name for name in old_types if name not in shared),
        splits_added=tuple(sorted({*new.splits} - {*old.splits})),
        splits_removed=tuple(sorted({*old.splits} - {*new.splits})),
        declared={
            name: (old_declared.get(name, ""), new_declared.get(name, ""))
            for name in dict.fromkeys((*old_declared, *new_declared))
            if old_declared.get(name) != new_declared.get(name)
        },
    )


def _compare(
    old: StoredRecords, new: StoredRecords, old_rows: Rows, new_rows: Rows, fields: Sequence[str]
) -> tuple[tuple[FieldChange, ...], dict[str, int]]:
    changed: list[FieldChange] = []
    relations: dict[str, int] = {}
    old_index, new_index = pa.array(old_rows), pa.array(new_rows)
    for name in ("split", *fields):
        if name in _NOT_COMPARED or name.startswith("x."):
            continue
        before, after = old.column(name).take(old_index), new.column(name).take(new_index)
        rows = np.flatnonzero(differing(before, after))
        if len(rows) and name in _RELATIONS:
            relations[name] = len(rows)
        elif len(rows):
            changed += _by_task(
                name, old, old_rows[rows], before.take(pa.array(rows)), after.take(pa.array(rows))
            )
    return tuple(sorted(changed, key=lambda change: (change.task, change.field))), relations


def _by_task(
    name: str, old: StoredRecords, rows: Rows, before: pa.Array, after: pa.Array
) -> Iterator[FieldChange]:
    """Changes of a field by task: the rows of the parent, and the old and the new values in them."""
    codes, tasks = sorted_codes(pa.chunked_array([old.column("task").take(pa.array(rows))]))
    for code, task in enumerate(tasks.to_pylist()):
        places = np.flatnonzero(codes == code)
        examples = (
            Example(
                old.trial_ids[int(rows[place])].as_py(), before[int(place)].as_py(), after[int(place)].as_py()
            )
            for place in places[:_EXAMPLES]
        )
        yield FieldChange(task, name, len(places), tuple(examples))


def _declared(manifest: Manifest) -> dict[str, str]:
    """What the derived columns follow from, as texts by name."""
    return {
        "search_space": ", ".join(parameter["name"] for parameter in manifest.search_space),
        **{
            f"search_space.{parameter['name']}": (
                f"{parameter['lower']!r} .. {parameter['upper']!r} {parameter['scaling']}"
            )
            for parameter in manifest.search_space
        },
        "objective": manifest.parameters["objective"],
        "warping": manifest.parameters["warping"],
    }


def _phrase(change: FieldChange) -> str:
    records = _number(change.records, "record")
    return f"{change.field} changed in {records} of {change.task} ({change.example})"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _counted(groups: Mapping[tuple[str, str], int], verb: str) -> Iterator[str]:
    if groups:
        places = _first(f"{split} {task} {count}" for (split, task), count in groups.items())
        yield f"{_number(sum(groups.values()), 'record')} {verb} ({', '.join(places)})"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _first(phrases: Iterable[str]) -> tuple[str, ...]:
    listed = tuple(phrases)
    more = len(listed) - _EXAMPLES
    return (*listed[:_EXAMPLES], f"and {more} more") if more > 0 else listed
