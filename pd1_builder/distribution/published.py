"""Finding a published version: its entry, its manifest, and what vouches for them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hyperbo.errors import (
    HyperBOError,
    InvalidInputError,
    NotAvailableError,
    UnreachableError,
    VersionConflictError,
)
from pd1_builder.distribution.index import Entry, find_entry
from pd1_builder.distribution.places import MissingError, Place, read_small
from pd1_builder.distribution.signatures import LARGEST_SIGNATURE, check_signature
from pd1_builder.distribution.transfer import Patience
from pd1_builder.manifest import LARGEST_MANIFEST, Manifest, parse_manifest
from pd1_builder.manifest_fields import MANIFEST_NAME, SIGNATURE_NAME

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """What is looked for.

    Attributes:
      reference: `<name>/<config>:<version>`; without a version, the newest.
      revision: SHA-256 that the manifest must have; None for any.
      public_key: key, or file of one, by which the manifest must be signed; None for no signature.
      largest: bytes that the version may have.
    """

    reference: str
    revision: str | None
    public_key: str | None
    largest: int


@dataclass(frozen=True)
class Published:
    """A version of a place, before its files are here.

    Attributes:
      entry: its entry in the index.
      manifest: what it consists of.
      content: the bytes of the manifest.
      signature: of the manifest; None where it is not signed.
    """

    entry: Entry
    manifest: Manifest
    content: bytes
    signature: bytes | None


def first_published(wanted: Wanted, places: Sequence[Place], patience: Patience) -> tuple[Published, Place]:
    """Find a version in the first of several places that has it as it should be.

    Returns:
      The version, and the place.

    Raises:
      InvalidInputError: the reference or the key is malformed, or the version is too large.
      NotAvailableError: no place has the version, or none could be read; says what each said.
      VersionConflictError: no place has it, and one has something else in its stead.
    """
    faults: list[HyperBOError] = []
    for each in places:
        try:
            return _find_patiently(wanted, each, patience), each
        except (NotAvailableError, VersionConflictError, InvalidInputError) as error:
            faults.append(error)
            if each is not places[-1]:
                _LOGGER.info("%s; trying the next place", error)
    if len({*map(str, faults)}) == 1:
        raise faults[0]
    has_conflict = any(isinstance(fault, VersionConflictError) for fault in faults)
    raise (VersionConflictError if has_conflict else NotAvailableError)("; ".join(map(str, faults)))


def read_signature(source: Place, entry: Entry) -> bytes | None:
    """The signature of a version's manifest; None where there is none.

    Raises:
      NotAvailableError, UnreachableError: it cannot be read.
      VersionConflictError: it is larger than any.
    """
    try:
        return read_small(source, f"{entry.folder}/{SIGNATURE_NAME}", LARGEST_SIGNATURE)
    except MissingError:
        return None


def _find_patiently(wanted: Wanted, source: Place, patience: Patience) -> Published:
    for failed in range(1, patience.attempts):
        try:
            return _find(wanted, source)
        except UnreachableError as error:
            time.sleep(patience.seconds(failed, error))
    return _find(wanted, source)


def _find(wanted: Wanted, source: Place) -> Published:
    entry = find_entry(source, wanted.reference)
    where = f"{source.url}/{entry.folder}/{MANIFEST_NAME}"
    if wanted.revision not in (None, entry.revision):
        raise VersionConflictError(f"{where} has the revision {entry.revision}, not {wanted.revision}")
    content = read_small(source, f"{entry.folder}/{MANIFEST_NAME}", LARGEST_MANIFEST)
    if hashlib.sha256(content).hexdigest() != entry.revision:
        raise VersionConflictError(
            f"{where} is not the one of the index, which has revision {entry.revision}"
        )
    signature = read_signature(source, entry)
    if wanted.public_key is not None:
        check_signature(content, signature, wanted.public_key, where)
        _LOGGER.info("%s is signed by the key given", where)
    manifest = parse_manifest(content, where)
    if (manifest.dataset, manifest.version) != (entry.dataset, entry.version):
        raise VersionConflictError(f"{where} is that of {manifest.reference}; do not use this place")
    size = sum(file.size for file in manifest.files)
    if size > wanted.largest:
        raise InvalidInputError(
            f"its files have {size} bytes, more than {wanted.largest}",
            where=where,
            fix="allow more: --largest",
        )
    return Published(entry, manifest, content, signature)
