"""What a catalogue shows: the versions of a place, read and checked, and the priors trained on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import NotAvailableError, VersionConflictError
from hyperbo.priors.file import read_prior
from hyperbo.priors.names import entry, known_line, lines, prior_ids, read_line
from pd1_builder.compare.diff import Changes
from pd1_builder.distribution.index import INDEX_NAME, Entry, read_entry, read_index
from pd1_builder.distribution.places import Place, read_small
from pd1_builder.distribution.remote_versions import read_signature
from pd1_builder.release.card import CARD_NAME
from pd1_builder.version.manifest import LARGEST_MANIFEST, MANIFEST_NAME, Manifest, parse_manifest

# Folder of the pages of versions, beside index.html.
PAGES = "catalogue"
_LARGEST_CARD = 1 << 20


@dataclass(frozen=True)
class ListedVersion:
    """A published version, with what its page shows.

    Attributes:
      entry: its entry in the index.
      changes: what changed since its parent; None if that is not known.
      manifest: its manifest.
      card: its card, as Markdown; empty if it has none.
      is_signed: whether its manifest is signed.
    """

    entry: Entry
    changes: Changes | None
    manifest: Manifest
    card: str
    is_signed: bool

    @property
    def page(self) -> str:
        """Its page, relative to index.html."""
        return f"{PAGES}/{self.entry.folder}.html"

    @property
    def trials(self) -> int:
        """Number of its records."""
        return sum(map(self.manifest.rows, self.manifest.counts))


class TrainedPrior(NamedTuple):
    """A prior of a prior catalog.

    Attributes:
      name: the name by which it is loaded, `<line>@<identifier>`.
      is_in_service: whether the name of its line alone loads it.
      method: method that trained it.
      dataset: reference of the version that it was trained on, as its description states.
      content_hash: content hash of that version.
    """

    name: str
    is_in_service: bool
    method: str
    dataset: str
    content_hash: str


@dataclass(frozen=True)
class Catalogue:
    """Everything that the pages show.

    Attributes:
      versions: the versions, sorted by dataset, then by number.
      priors: the priors of all prior catalogs, whatever they were trained on.
      address: address of the place, as readers have to type it.
      file_links: beginning of a link to a file, before the folder of its version; None for no links.
    """

    versions: tuple[ListedVersion, ...]
    priors: tuple[TrainedPrior, ...]
    address: str
    file_links: str | None

    @property
    def datasets(self) -> dict[str, tuple[ListedVersion, ...]]:
        """The versions by dataset, the oldest first."""
        by_dataset = groupby(self.versions, key=lambda version: version.entry.dataset)
        return {dataset: tuple(versions) for dataset, versions in by_dataset}


def read_versions(place: Place) -> tuple[ListedVersion, ...]:
    """The versions of a place, each checked against its entry.

    Raises:
      NotAvailableError: nothing is published at the place, or a file may not be read.
      UnreachableError: a file cannot be read now.
      VersionConflictError: the index, a manifest or a card is not the one that was published.
    """
    return tuple(_read_version(place, each) for each in read_index(place))


def read_priors(catalogs: Iterable[Path]) -> tuple[TrainedPrior, ...]:
    """All priors of prior catalogs by name, those in service first. A name in several catalogs counts once.

    Raises:
      NotAvailableError: a catalog is not a folder.
      InvalidInputError: a prior is damaged.
      VersionConflictError: a prior has an unknown format.
    """
    found: dict[str, TrainedPrior] = {}
    for catalog in catalogs:
        if not catalog.is_dir():
            raise NotAvailableError(f"{catalog} is not a folder of priors; give one that exists")
        for line in lines(catalog):
            for prior in _priors_of_line(catalog, line):
                found.setdefault(prior.name, prior)
    return tuple(sorted(found.values(), key=lambda prior: (not prior.is_in_service, prior.name)))


def trained_on(
    priors: Sequence[TrainedPrior], reference: str, content_hash: str
) -> tuple[tuple[TrainedPrior, ...], tuple[TrainedPrior, ...]]:
    """The priors trained on a version, and the priors that name it but were trained on other records.

    The version is known by its reference and the content hash of its records.
    """
    naming = [prior for prior in priors if prior.dataset == reference]
    return (
        tuple(prior for prior in naming if prior.content_hash == content_hash),
        tuple(prior for prior in naming if prior.content_hash != content_hash),
    )


def _priors_of_line(catalog: Path, line: str) -> Iterator[TrainedPrior]:
    folder, current = known_line(catalog, line), read_line(catalog, line).current
    for prior_id in prior_ids(folder):
        description = read_prior(entry(folder, prior_id)).description
        trained = (description.method, description.dataset, description.manifest_hash)
        yield TrainedPrior(f"{line}@{prior_id}", prior_id == current, *trained)


def _read_version(place: Place, listed: Entry) -> ListedVersion:
    found = read_entry(place, listed.folder)
    if found is None or found[0] != listed:
        raise VersionConflictError(
            f"{place.url}/{listed.name}: is not what {INDEX_NAME} says; publish a version there again"
        )
    where = f"{place.url}/{listed.folder}/{MANIFEST_NAME}"
    content = read_small(place, f"{listed.folder}/{MANIFEST_NAME}", LARGEST_MANIFEST)
    _require_hash(content, listed.revision, where)
    manifest = parse_manifest(content, where)
    if manifest.reference != listed.reference:
        raise VersionConflictError(f"{where}: is the manifest of {manifest.reference}")
    card = b""
    for file in manifest.files:
        # A larger card is not shown. It is in the list of files all the same.
        if file.name == CARD_NAME and file.size <= _LARGEST_CARD:
            card = read_small(place, f"{listed.folder}/{CARD_NAME}", _LARGEST_CARD)
            _require_hash(card, file.sha256, f"{place.url}/{listed.folder}/{CARD_NAME}")
    is_signed = read_signature(place, listed) is not None
    return ListedVersion(listed, found[1], manifest, card.decode(errors="replace"), is_signed)


def _require_hash(content: bytes, sha256: str, where: str) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VersionConflictError(
            f"{where}: is not the file that was published; publish the version there again"
        )
