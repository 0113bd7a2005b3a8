"""The index of a place: which versions are published there.

A version exists once its entry does, a small file of its own that is created in one step and never changed.
`index.json` lists all entries, for a web server shows no folders.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.printable import printable
from pd1_builder.catalog import version_folder, version_numbers
from pd1_builder.diff import Changes
from pd1_builder.distribution.places import MissingError, Place, WritablePlace, read_small
from pd1_builder.manifest_fields import DATASET, SHA256, VERSION, is_count, require

INDEX_NAME = "index.json"
INDEX_FOLDER = "index"
_LOGGER = logging.getLogger(__name__)
_LARGEST_INDEX = 16 << 20
_LARGEST_ENTRY = 1 << 20
_FORMAT = 1
_PATTERNS = {
    "dataset": DATASET,
    "version": VERSION,
    "revision": SHA256,
    "content_hash": SHA256,
    "published": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
}


@dataclass(frozen=True)
class Entry:
    """A published version.

    Attributes:
      dataset: `<name>/<config>`.
      version: semantic version.
      revision: SHA-256 of its `manifest.json`; pins every byte of it.
      parent: version that it follows; None for the first.
      content_hash: identity of its records.
      records: number of them, by split.
      tasks: number of them.
      size: bytes of all its files.
      published: when, in UTC, such as 2026-11-22T10:00:00Z.
    """

    dataset: str
    version: str
    revision: str
    parent: str | None
    content_hash: str
    records: Mapping[str, int]
    tasks: int
    size: int
    published: str

    @property
    def reference(self) -> str:
        """`<name>/<config>:<version>`."""
        return f"{self.dataset}:{self.version}"

    @property
    def folder(self) -> str:
        """Where its files are, relative to the place."""
        return f"{self.dataset}/{self.version}"

    @property
    def name(self) -> str:
        """The file of this entry, relative to the place."""
        return f"{INDEX_FOLDER}/{self.folder}.json"


def read_index(source: Place) -> tuple[Entry, ...]:
    """The versions published at a place, sorted by dataset, then by version.

    Raises:
      NotAvailableError, UnreachableError: there is no index, or it cannot be read.
      VersionConflictError: it is damaged or too large, or has a format that is not understood.
    """
    where = f"{source.url}/{INDEX_NAME}"
    try:
        content = read_small(source, INDEX_NAME, _LARGEST_INDEX)
    except MissingError as error:
        raise NotAvailableError(f"nothing is published at {source.url}: {error}") from error
    with _explaining_damage(where):
        listed = _fields(content)["versions"]
        require(isinstance(listed, list), "versions")
        return _sorted(map(_entry, listed))


def find_entry(source: Place, reference: str) -> Entry:
    """The entry of a version by `<name>/<config>:<version>`; without a version, the newest that is listed.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: there is no such version; the message lists those that are. Or as `read_index`.
      VersionConflictError: as `read_index`.
    """
    entries, where = read_index(source), source.url
    dataset, colon, version = reference.partition(":")
    if not DATASET.fullmatch(dataset):
        known = ", ".join(sorted({entry.dataset for entry in entries if entry.dataset.startswith(dataset)}))
        raise InvalidInputError(
            f"dataset {dataset!r}", fix=f"write <name>/<config>; {where} has {known or 'none of that name'}"
        )
    version_folder(dataset, version if colon else "0.0.0")
    known = [entry for entry in entries if entry.dataset == dataset]
    chosen = [entry for entry in known if not colon or entry.version == version]
    if not chosen:
        # Of several who published at once the last may have ended before it had listed all.
        if colon and (unlisted := read_entry(source, f"{dataset}/{version}")):
            return unlisted[0]
        names = ", ".join(entry.version for entry in known) or "none"
        raise NotAvailableError(f"{reference} is not published at {where} (versions of {dataset}: {names})")
    return chosen[-1]


def create_entry(target: WritablePlace, entry: Entry, changes: Changes | None) -> None:
    """Make a version exist whose files are all there.

    Args:
      target: the place.
      entry: of the version.
      changes: what changed since its parent; None where that is not known.

    Raises:
      FileExistsError: the version exists.
    """
    stated = {"bump": changes.bump} | changes._asdict() if changes else None
    target.create(entry.name, _text({"format": _FORMAT, "version": asdict(entry), "changes": stated}))


def read_entry(source: Place, folder: str) -> tuple[Entry, Changes | None] | None:
    """The entry of a version by its folder, and what changed since its parent; None where there is none.

    Raises:
      NotAvailableError, UnreachableError: it cannot be read.
      VersionConflictError: it is damaged, or has a format that is not understood.
    """
    name = f"{INDEX_FOLDER}/{folder}.json"
    where = f"{source.url}/{name}"
    try:
        content = read_small(source, name, _LARGEST_ENTRY)
    except MissingError:
        return None
    with _explaining_damage(where):
        fields = _fields(content)
        stated = fields["changes"]
        if stated is not None:
            phrases = (*stated["breaking"], *stated["additions"])
            require(all(isinstance(phrase, str) for phrase in phrases), "changes")
            stated = Changes(tuple(stated["breaking"]), tuple(stated["additions"]))
        return _entry(fields["version"]), stated


def list_entries(target: WritablePlace) -> None:
    """Write `index.json` anew from the entries; what else lies in their folder is left out, with a warning.

    Where nothing keeps other processes away meanwhile, the one that writes last looks once more at what there
    is, and writes again if an entry was added.
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
        _LOGGER.warning("%s/%s is no entry of a version; it is not listed", target.url, name)
        return None
    return found[0]


def _sorted(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (each.dataset, version_numbers(each.version))))


def _text(fields: Mapping[str, Any]) -> bytes:
    return (json.dumps(fields, indent=1) + "\n").encode()


def _fields(content: bytes) -> dict[str, Any]:
    fields = json.loads(content)
    require(isinstance(fields, dict) and fields["format"] == _FORMAT, "format")
    return fields


def _entry(fields: Any) -> Entry:
    entry = Entry(**fields)
    for name, pattern in _PATTERNS.items():
        value = getattr(entry, name)
        require(isinstance(value, str) and pattern.fullmatch(value) is not None, name)
    require(entry.parent is None or VERSION.fullmatch(entry.parent) is not None, "parent")
    require(isinstance(entry.records, dict) and all(map(is_count, entry.records.values())), "records")
    require(is_count(entry.tasks) and is_count(entry.size), "size")
    return entry


@contextmanager
def _explaining_damage(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, HyperBOError):
            raise
        raise VersionConflictError(
            f"{where}: is damaged, or of another format ({printable(error, 200)}); "
            "who publishes there mends it by publishing a version again"
        ) from error
