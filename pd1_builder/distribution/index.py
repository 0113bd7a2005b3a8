"""The index of a place: which versions are published there.

A version exists once its entry does, a small file of its own that is created in one step and never changed.
`index.json` lists all entries, for a web server shows no folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.catalog import version_folder, version_numbers
from pd1_builder.diff import Changes
from pd1_builder.distribution.places import MissingError, Place, WritablePlace, read_small
from pd1_builder.manifest_fields import DATASET, SHA256, VERSION, is_count, require

INDEX_NAME = "index.json"
INDEX_FOLDER = "index"
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
      is_signed: whether a signature of the manifest lies beside it.
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
    is_signed: bool

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
      VersionConflictError: it is damaged, or has a format that is not understood.
      InvalidInputError: it is too large.
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


def find_entry(entries: tuple[Entry, ...], reference: str, where: str) -> Entry:
    """The entry of a version by `<name>/<config>:<version>`; without a version, the newest.

    Args:
      entries: sorted, as `read_index` gives them.
      reference: what to find.
      where: the index is from.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: there is no such version; the message lists those that are.
    """
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
    """Write `index.json` anew from the entries.

    Of several processes that do so at once, the one that writes last looks once more at what there is, and
    writes again where an entry was added meanwhile.
    """
    listed: tuple[str, ...] | None = None
    while (names := tuple(target.sizes(INDEX_FOLDER))) != listed:
        found = [read_entry(target, _folder_of(name)) for name in names if name.endswith(".json")]
        entries = _sorted(entry for entry, _ in filter(None, found))
        target.replace(INDEX_NAME, _text({"format": _FORMAT, "versions": [asdict(each) for each in entries]}))
        listed = names


def _folder_of(name: str) -> str:
    return name.removeprefix(f"{INDEX_FOLDER}/").removesuffix(".json")


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
    require(is_count(entry.tasks) and is_count(entry.size) and isinstance(entry.is_signed, bool), "size")
    return entry


@contextmanager
def _explaining_damage(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, HyperBOError):
            raise
        raise VersionConflictError(
            f"{where}: is damaged, or of another format ({error}); publish a version there again"
        ) from error
