"""Publishing a version: all of its files first, then, in one step, the entry that makes it exist."""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.catalog import Version, find
from pd1_builder.diff import Changes, diff_folders
from pd1_builder.distribution.addresses import writable_place
from pd1_builder.distribution.index import INDEX_FOLDER, Entry, create_entry, list_entries, read_entry
from pd1_builder.distribution.places import MissingError, Place, WritablePlace, read_small
from pd1_builder.distribution.signatures import LARGEST_SIGNATURE, sign
from pd1_builder.manifest import Manifest
from pd1_builder.manifest_fields import MANIFEST_NAME, SIGNATURE_NAME
from pd1_builder.staging import explaining_disk_errors
from pd1_builder.verification import check_files, verify

_LOGGER = logging.getLogger(__name__)
_ADVICE = "the index does not have it: free some space and publish it again"


def publish(
    reference: str, url: str | Path, *, data_dir: Path | None = None, key: Path | None = None
) -> Entry:
    """Publish a version, after it was verified; of one that is published already, what is missing there.

    A publication that was ended early goes on with the files that are not there yet; those that are there are
    read and compared. Of two processes that publish different versions under one number, one is refused
    before it writes any file.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest that is here.
      url: the place: a folder, or a URL of fsspec such as s3://bucket/data.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      key: file of the secret key to sign the manifest with, also of a version that is published already; None
        for no signature but the one that the version was pulled with.

    Returns:
      The entry of the version in the index of the place.

    Raises:
      NotAvailableError: there is no such version.
      UnreachableError: the place cannot be written to now.
      VersionConflictError: the version is damaged, or the place has another one of its number.
      InvalidInputError: the place or the key cannot be used.
      HyperBOError: no space is left there.
    """
    target = writable_place(url)
    version = find(reference, data_dir)
    if version.dataset.startswith(f"{INDEX_FOLDER}/"):
        raise InvalidInputError(
            f"dataset {version.dataset!r}", fix="give it another name: a place keeps its index there"
        )
    manifest = verify(f"{version.dataset}:{version.version}", data_dir)
    content = (version.folder / MANIFEST_NAME).read_bytes()
    signature = _signature(version, content, manifest, key)
    entry = Entry(
        dataset=version.dataset,
        version=version.version,
        revision=hashlib.sha256(content).hexdigest(),
        parent=manifest.parent,
        content_hash=manifest.content_hash,
        records={split: manifest.rows(split) for split in manifest.counts},
        tasks=len({task for tasks in manifest.counts.values() for task in tasks}),
        size=sum(file.size for file in manifest.files) + len(content),
        published=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    with explaining_disk_errors(f"{entry.reference} at {target.url}", _ADVICE):
        published = _existing(target, entry)
        if published is None:
            is_first = _claim(target, entry)
            _remove_others(target, entry, manifest, is_first)
        # Of one that is published too: a file that the place has lost comes back.
        _put_files(target, version, manifest)
        if signature is not None:
            _put_signature(target, entry, signature, is_asked=key is not None)
        _put_content(target, f"{entry.folder}/{MANIFEST_NAME}", content)
        if published is None:
            # Else what was copied may be another file than the one that was verified.
            check_files(version.folder, manifest)
            published = _publish_entry(target, entry, _changes(version, manifest, data_dir))
        list_entries(target)
    return published


def _signature(version: Version, content: bytes, manifest: Manifest, key: Path | None) -> bytes | None:
    if key is not None:
        return sign(content, key, manifest.reference)
    path = version.folder / SIGNATURE_NAME
    return path.read_bytes() if path.exists() else None


def _existing(target: WritablePlace, entry: Entry) -> Entry | None:
    found = read_entry(target, entry.folder)
    if found is None:
        return None
    if found[0].revision != entry.revision:
        raise VersionConflictError(
            f"{entry.reference} is published at {target.url} with the revision {found[0].revision}, and the "
            f"one here has {entry.revision}; what is published never changes: publish a new version"
        )
    _LOGGER.info("%s: published at %s already; checking its files", entry.reference, target.url)
    return found[0]


def _claim(target: WritablePlace, entry: Entry) -> bool:
    """Reserve the number for this revision: nobody else writes files under it from now on.

    Returns:
      Whether nobody had reserved it before for the same revision.
    """
    name = f"{INDEX_FOLDER}/{entry.folder}.claim"
    try:
        target.create(name, entry.revision.encode())
        return True
    except FileExistsError as error:
        claimed = read_small(target, name, len(entry.revision)).decode(errors="replace")
        if claimed != entry.revision:
            raise VersionConflictError(
                f"somebody is publishing {entry.reference} at {target.url} with the revision {claimed}, or "
                f"began to; publish a new version, or remove {target.url}/{name} if that was given up"
            ) from error
        return False


def _put_files(target: WritablePlace, version: Version, manifest: Manifest) -> None:
    folder = f"{version.dataset}/{version.version}"
    there = target.sizes(folder)
    for file in manifest.files:
        name = f"{folder}/{file.name}"
        # Of the same size may be a file that is damaged, or left by another who gave up the claim.
        if there.get(name) != file.size or _sha256(target, name) != file.sha256:
            target.put(name, version.folder / file.name)
            _LOGGER.info("%s: %s, %d bytes", manifest.reference, file.name, file.size)


def _remove_others(target: WritablePlace, entry: Entry, manifest: Manifest, is_first: bool) -> None:
    """Remove what somebody left under the number who gave up the claim."""
    names = {file.name for file in manifest.files}
    if not is_first:
        # Another process may have published the same revision a moment ago.
        names |= {MANIFEST_NAME, SIGNATURE_NAME}
    for name in target.sizes(entry.folder):
        if name.removeprefix(f"{entry.folder}/") not in names:
            target.remove(name)


def _put_signature(target: WritablePlace, entry: Entry, signature: bytes, *, is_asked: bool) -> None:
    """Sign what is not signed: a signature that others may rely on is never replaced."""
    name = f"{entry.folder}/{SIGNATURE_NAME}"
    try:
        target.create(name, signature)
    except FileExistsError as error:
        if is_asked and read_small(target, name, LARGEST_SIGNATURE) != signature:
            raise VersionConflictError(
                f"{target.url}/{name} is the signature of another key; remove it if yours is to stand there"
            ) from error


def _put_content(target: WritablePlace, name: str, content: bytes) -> None:
    try:
        if read_small(target, name, len(content)) == content:
            return
    except (MissingError, VersionConflictError):  # It is not there, or larger.
        pass
    target.replace(name, content)


def _sha256(source: Place, name: str) -> str:
    hashed = hashlib.sha256()
    with source.open(name) as opened:
        for chunk in opened.chunks:
            hashed.update(chunk)
    return hashed.hexdigest()


def _publish_entry(target: WritablePlace, entry: Entry, changes: Changes | None) -> Entry:
    try:
        create_entry(target, entry, changes)
    except FileExistsError:  # Another process published the same revision meanwhile.
        return _existing(target, entry) or entry
    return entry


def _changes(version: Version, manifest: Manifest, data_dir: Path | None) -> Changes | None:
    if manifest.parent is None:
        return None
    try:
        parent = find(f"{version.dataset}:{manifest.parent}", data_dir)
    except NotAvailableError:
        _LOGGER.info("what changed since %s is not stated, for it is not here", manifest.parent)
        return None
    return diff_folders(parent.folder, version.folder).changes
