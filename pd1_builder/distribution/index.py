"""The index of a place: which versions are published there.

Each version has an entry, a small file that is created in one step and never changes. A version is published
once its entry exists. `index.json` lists all entries, because a web server does not list folders.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.storage.printable import printable
from hyperbo.storage.validation import validated
from pd1_builder.compare.diff import Changes
from pd1_builder.distribution.places import MissingError, Place, WritablePlace, read_small
from pd1_builder.version.catalog import version_folder, version_numbers
from pd1_builder.version.manifest import DATASET, Count, Dataset, Sha256, Version

INDEX_NAME = "index.json"
INDEX_FOLDER = "index"
_LOGGER = logging.getLogger(__name__)
_LARGEST_INDEX = 16 << 20
_LARGEST_ENTRY = 1 << 20
_FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """The entry of a published version.

    Attributes:
      dataset: `<name>/<config>`.
      version: its number.
      revision: SHA-256 of its `manifest.json`, which fixes every byte of the version.
      parent: number of the version that it follows; None for the first.
      content_hash: identity of its records.
      records: number of records, by split.
      tasks: number of tasks.
      size: size of all its files in bytes.
      published: time of publication in UTC, such as 2026-11-22T10:00:00Z.
    """

    dataset: Dataset
    version: Version
    revision: Sha256
    parent: Version | None
    content_hash: Sha256
    records: Mapping[str, Count]
    tasks: Count
    size: Count
    published: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z$")]

    @property
    def reference(self) -> str:
        """`<name>/<config>:<version>`."""
        return f"{self.dataset}:{self.version}"

    @property
    def folder(self) -> str:
        """The folder of its files, relative to the place."""
        return f"{self.dataset}/{self.version}"

    @property
    def name(self) -> str:
        """The file of this entry, relative to the place."""
        return f"{INDEX_FOLDER}/{self.folder}.json"


@dataclass(frozen=True)
class _Index:
    format: Literal[1]
    versions: tuple[Entry, ...]


@dataclass(frozen=True)
class _Changes:
    bump: str
    breaking: tuple[str, ...]
    additions: tuple[str, ...]


@dataclass(frozen=True)
class _EntryFile:
    format: Literal[1]
    version: Entry
    changes: _Changes | None


def read_index(place: Place) -> tuple[Entry, ...]:
    """The versions published at a place, sorted by dataset, then by version.

    Raises:
      NotAvailableError: there is no index, or it may not be read.
      UnreachableError: the index cannot be read now.
      VersionConflictError: the index is damaged, too large, or of an unknown format.
    """
    where = f"{place.url}/{INDEX_NAME}"
    try:
        content = read_small(place, INDEX_NAME, _LARGEST_INDEX)
    except MissingError as error:
        raise NotAvailableError(f"nothing is published at {place.url}: {error}") from error
    with _explaining_damage(where):
        return _sorted(validated(_Index, json.loads(content), "").versions)


def find_entry(place: Place, reference: str) -> Entry:
    """The entry of a version by its reference, `<name>/<config>:<version>`; without a version, the newest.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: the place does not have the version, the message lists those that it has; or there is
        no index, or it may not be read.
      UnreachableError: the index cannot be read now.
      VersionConflictError: the index is damaged, too large, or of an unknown format.
    """
    entries, where = read_index(place), place.url
    dataset, colon, version = reference.partition(":")
    if not DATASET.fullmatch(dataset):
        known = ", ".join(sorted({entry.dataset for entry in entries if entry.dataset.startswith(dataset)}))
        raise InvalidInputError(
            f"dataset {dataset!r}",
            fix=f"write <name>/<config>; {where} has {known or 'no dataset of that name'}",
        )
    version_folder(dataset, version if colon else "0.0.0")
    known = [entry for entry in entries if entry.dataset == dataset]
    chosen = [entry for entry in known if not colon or entry.version == version]
    if not chosen:
        # If several processes published at once, the last one may have ended before it listed all entries.
        if colon and (unlisted := read_entry(place, f"{dataset}/{version}")):
            return unlisted[0]
        names = ", ".join(entry.version for entry in known) or "none"
        raise NotAvailableError(f"{reference} is not published at {where} (versions of {dataset}: {names})")
    return chosen[-1]


def create_entry(target: WritablePlace, entry: Entry, changes: Changes | None) -> None:
    """Create the entry of a version with what changed since its parent; None if that is not known.

    All files of the version must be at the place already.

    Raises:
      FileExistsError: the version has an entry.
      UnreachableError: the place cannot be written to now.
    """
    stated = {"bump": changes.bump} | changes._asdict() if changes else None
    target.create(entry.name, _text({"format": _FORMAT, "version": asdict(entry), "changes": stated}))


def read_entry(place: Place, folder: str) -> tuple[Entry, Changes | None] | None:
    """The entry of a version, and what changed since its parent; None if the place has no entry.

    The folder is that of the version, `<name>/<config>/<version>`.

    Raises:
      NotAvailableError: the entry may not be read.
      UnreachableError: the entry cannot be read now.
      VersionConflictError: the entry is damaged or of an unknown format.
    """
    name = f"{INDEX_FOLDER}/{folder}.json"
    where = f"{place.url}/{name}"
    try:
        content = read_small(place, name, _LARGEST_ENTRY)
    except MissingError:
        return None
    with _explaining_damage(where):
        found = validated(_EntryFile, json.loads(content), "")
        stated = found.changes
        return found.version, Changes(stated.breaking, stated.additions) if stated else None


def list_entries(target: WritablePlace) -> None:
    """Write `index.json` from the entries. Other files in their folder are left out, with a warning.

    Not every place has a lock. Therefore each process lists the entries again after it has written, and
    writes again if one was added.
    """
    listed: tuple[str, ...] | None = None
    with target.alone():
        while (names := tuple(target.sizes(INDEX_FOLDER))) != listed:
            found = [_listed(target, name) for name in names if not name.endswith(".claim")]
            entries = _sorted(filter(None, found))
            fields = {"format": _FORMAT, "versions": [asdict(each) for each in entries]}
            target.replace(INDEX_NAME, _text(fields))
            listed = names


def _listed(target: WritablePlace, name: str) -> Entry | None:
    try:
        found = read_entry(target, name.removeprefix(f"{INDEX_FOLDER}/").removesuffix(".json"))
    except VersionConflictError as error:
        _LOGGER.warning("%s", error)
        return None
    if found is None or found[0].name != name:
        _LOGGER.warning("%s/%s is not the entry of a version; it is not listed", target.url, name)
        return None
    return found[0]


def _sorted(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (each.dataset, version_numbers(each.version))))


def _text(fields: Mapping[str, Any]) -> bytes:
    return (json.dumps(fields, indent=1) + "\n").encode()


@contextmanager
def _explaining_damage(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise VersionConflictError(
            f"{where}: is damaged, or of an unknown format ({printable(error, 200)}); "
            "its owner can repair it by publishing a version there again"
        ) from error
