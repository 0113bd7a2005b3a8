"""Finding a version at places: its entry, its manifest and its signature, all checked."""

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
from pd1_builder.distribution.transfer import RetryPolicy
from pd1_builder.version.manifest import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    SIGNATURE_NAME,
    Manifest,
    parse_manifest,
)

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Requirements:
    """What a version must satisfy to be pulled.

    Attributes:
      reference: `<name>/<config>:<version>`; without a version, the newest one.
      revision: revision that it must have; None for any.
      public_key: public key, or the path of its file, that must have signed the manifest; None for no
        signature.
      largest: largest size in bytes.
    """

    reference: str
    revision: str | None
    public_key: str | None
    largest: int


@dataclass(frozen=True)
class RemoteVersion:
    """A version at a place, of which the manifest is read, but not the other files.

    Attributes:
      entry: its entry.
      manifest: its manifest.
      content: the bytes of the manifest.
      signature: signature of the manifest; None if it is not signed.
    """

    entry: Entry
    manifest: Manifest
    content: bytes
    signature: bytes | None


def find_remote_version(
    requirements: Requirements, places: Sequence[Place], retries: RetryPolicy
) -> tuple[RemoteVersion, Place]:
    """Find a version at the first of several places where it satisfies the requirements; and that place.

    Raises:
      InvalidInputError: the reference or the key is malformed, or the version is too large.
      NotAvailableError: no place has the version, or none could be read; the message says why for each.
      VersionConflictError: no place has a version that satisfies the requirements, and at least one has a
        version that does not.
    """
    errors: list[HyperBOError] = []
    for place in places:
        try:
            return _find_with_retries(requirements, place, retries), place
        except (NotAvailableError, VersionConflictError, InvalidInputError) as error:
            errors.append(error)
            if place is not places[-1]:
                _LOGGER.info("%s; trying the next place", error)
    if len({*map(str, errors)}) == 1:
        raise errors[0]
    has_conflict = any(isinstance(error, VersionConflictError) for error in errors)
    raise (VersionConflictError if has_conflict else NotAvailableError)("; ".join(map(str, errors)))


def read_signature(place: Place, entry: Entry) -> bytes | None:
    """The signature of a version's manifest; None if there is none.

    Raises:
      NotAvailableError: the signature may not be read.
      UnreachableError: the signature cannot be read now.
      VersionConflictError: the file is too large for a signature.
    """
    try:
        return read_small(place, f"{entry.folder}/{SIGNATURE_NAME}", LARGEST_SIGNATURE)
    except MissingError:
        return None


def _find_with_retries(requirements: Requirements, place: Place, retries: RetryPolicy) -> RemoteVersion:
    for failed in range(1, retries.attempts):
        try:
            return _find(requirements, place)
        except UnreachableError as error:
            time.sleep(retries.wait(failed, error))
    return _find(requirements, place)


def _find(requirements: Requirements, place: Place) -> RemoteVersion:
    entry = find_entry(place, requirements.reference)
    where = f"{place.url}/{entry.folder}/{MANIFEST_NAME}"
    if requirements.revision not in (None, entry.revision):
        raise VersionConflictError(f"{where} has the revision {entry.revision}, not {requirements.revision}")
    content = read_small(place, f"{entry.folder}/{MANIFEST_NAME}", LARGEST_MANIFEST)
    if hashlib.sha256(content).hexdigest() != entry.revision:
        raise VersionConflictError(
            f"{where} does not have the revision {entry.revision} that the index states"
        )
    signature = read_signature(place, entry)
    if requirements.public_key is not None:
        check_signature(content, signature, requirements.public_key, where)
        _LOGGER.info("%s is signed by the given key", where)
    manifest = parse_manifest(content, where)
    if (manifest.dataset, manifest.version) != (entry.dataset, entry.version):
        raise VersionConflictError(f"{where} is the manifest of {manifest.reference}; do not use this place")
    size = sum(file.size for file in manifest.files)
    if size > requirements.largest:
        raise InvalidInputError(
            f"the files of the version have {size} bytes, more than {requirements.largest}",
            where=where,
            fix="allow more: --largest",
        )
    return RemoteVersion(entry, manifest, content, signature)
