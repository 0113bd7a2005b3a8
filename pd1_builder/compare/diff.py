"""What differs between two versions: records, fields, splits and declared values.

It needs neither TFDS nor Beam.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from hyperbo.storage.paths import StrPath
from hyperbo.storage.printable import count
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest
from pd1_builder.version.stored_records import Rows, StoredRecords, differing, pair

# `source` says where a record was read. x and y follow from the raw values and the declared values.
_NOT_COMPARED = ("trial_id", "source", "y", "x")
# They relate a record to others. A task added to matched inputs renames the block of every record in it.
_RELATIONS = ("block", "duplicates")
_EXAMPLES = 3
Bump = Literal["major", "minor", "patch"]


class Changes(NamedTuple):
    """What changed from a parent to a version, as phrases for people.

    Attributes:
      breaking: records that changed, records, fields or splits that were removed, and declared values that
        changed.
      additions: records, fields or splits that were added.
    """

    breaking: tuple[str, ...] = ()
    additions: tuple[str, ...] = ()

    @property
    def bump(self) -> Bump:
        """The component of the version number that the changes require to increase.

        >>> Changes(additions=("3 records added",)).bump
        'minor'
        """
        return "major" if self.breaking else "minor" if self.additions else "patch"


class Example(NamedTuple):
    """One changed trial: its id, and the old and the new value of the field."""

    trial_id: str
    old: Any
    new: Any


class FieldChange(NamedTuple):
    """How often a field changed in a task.

    Attributes:
      task: name of the task in the parent.
      field: name of the field.
      records: number of records in which it changed.
      examples: the first few of them.
    """

    task: str
    field: str
    records: int
    examples: tuple[Example, ...]

    @property
    def example(self) -> str:
        """The first example, shortened."""
        first = self.examples[0]
        return f"{first.trial_id}: {_shorten(first.old)} -> {_shorten(first.new)}"


@dataclass(frozen=True)
class Diff:
    """What differs between a parent and another version. Records correspond if their trial ids are equal.

    Floats are compared by their bits, as in the content hash: 0.0 and -0.0 differ. All NaNs are equal.

    Attributes:
      parent: manifest of the parent.
      manifest: manifest of the other version.
      added: number of records that only the other version has, by split and task.
      removed: number of records that only the parent has, by split and task.
      changed: fields that changed, by task. A move to another split is a change of the field `split`.
      relations: number of records whose `block` or `duplicates` changed. The version number does not depend
        on them.
      fields_added: columns that only the other version has.
      fields_removed: columns that only the parent has. A column whose type changed is in both lists.
      splits_added: splits that only the other version has.
      splits_removed: splits that only the parent has.
      declared: the old and the new value of each parameter of the search space, objective or warping that
        differs, as texts; empty if there was none.
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
                    f"declared {name} is {new or 'missing'}, was {old or 'missing'}"
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
        """The component of the version number that the differences require to increase."""
        return self.changes.bump


def diff(parent: str, reference: str, data_dir: StrPath | None = None) -> Diff:
    """Compare two versions.

    Args:
      parent: reference of the parent, `<name>/<config>:<version>`; without a version, the newest one.
      reference: reference of the version compared with it.
      data_dir: the data folder; None for `catalog.default_data_dir`.

    Raises:
      NotAvailableError: the data folder does not hold a version.
      VersionConflictError: a version's files are not those of its manifest.
    """
    return diff_folders(find(parent, data_dir).folder, find(reference, data_dir).folder)


def diff_folders(parent: Path, folder: Path) -> Diff:
    """Compare the versions in two folders. Records are read only if the content hashes differ.

    Raises:
      NotAvailableError: a folder holds no version.
      VersionConflictError: a version's files are not those of its manifest, or a trial id occurs twice.
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
    tasks = np.array(old.column("task").take(pa.array(rows)).to_pylist(), object)
    for task in sorted(set(tasks)):
        positions = np.flatnonzero(tasks == task)
        examples = (
            Example(old.trial_ids[int(rows[at])].as_py(), before[int(at)].as_py(), after[int(at)].as_py())
            for at in positions[:_EXAMPLES]
        )
        yield FieldChange(task, name, len(positions), tuple(examples))


def _declared(manifest: Manifest) -> dict[str, str]:
    """The declared values, from which the derived columns follow, as texts by name."""
    return {
        "search_space": ", ".join(parameter["name"] for parameter in manifest.search_space),
        **{f"search_space.{fields['name']}": _words(fields) for fields in manifest.search_space},
        "objective": manifest.parameters["objective"],
        "warping": manifest.parameters["warping"],
    }


def _words(fields: Mapping[str, Any]) -> str:
    """What a manifest says of a parameter, on one line."""
    if fields.keys() == {"name", "lower", "upper", "scaling"}:
        return f"{fields['lower']!r} .. {fields['upper']!r} {fields['scaling']}"
    return ", ".join(f"{key} {value!r}" for key, value in fields.items() if key != "name")


def _phrase(change: FieldChange) -> str:
    records = count(change.records, "record")
    return f"{change.field} changed in {records} of {change.task} ({change.example})"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _counted(groups: Mapping[tuple[str, str], int], verb: str) -> Iterator[str]:
    if groups:
        groups_named = _first(f"{split} {task} {records}" for (split, task), records in groups.items())
        yield f"{count(sum(groups.values()), 'record')} {verb} ({', '.join(groups_named)})"


def _first(phrases: Iterable[str]) -> tuple[str, ...]:
    listed = tuple(phrases)
    more = len(listed) - _EXAMPLES
    return (*listed[:_EXAMPLES], f"and {more} more") if more > 0 else listed
