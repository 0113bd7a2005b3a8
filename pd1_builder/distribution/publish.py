"""Publishing a version at a place: first all of its files, then, in one step, its entry."""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.storage.paths import StrPath, as_path
from pd1_builder.compare.diff import Changes, diff_folders
from pd1_builder.distribution.addresses import writable_place_at
from pd1_builder.distribution.index import INDEX_FOLDER, Entry, create_entry, list_entries, read_entry
from pd1_builder.distribution.places import MissingError, Place, WritablePlace, read_small
from pd1_builder.distribution.signatures import LARGEST_SIGNATURE, sign
from pd1_builder.version.catalog import Version, find
from pd1_builder.version.disk_errors import explaining_disk_errors
from pd1_builder.version.manifest import MANIFEST_NAME, SIGNATURE_NAME, Manifest
from pd1_builder.version.verification import check_files, verify

_LOGGER = logging.getLogger(__name__)
_ADVICE = "it is not in the index: free some space and publish it again"


def publish(
    reference: str, url: StrPath, *, data_dir: StrPath | None = None, key: StrPath | None = None
) -> Entry:
    """Verify a version and publish it at a place. If it is published already, missing files are added.

    After an interruption, a second call adds the files that are missing or wrong at the place. If two
    processes publish different revisions of the same version, one of them fails before it writes any file.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest one in the data folder.
      url: the place: a folder, or a URL of fsspec such as s3://bucket/data.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      key: file of the secret key to sign the manifest with, even if the version is published already. None
        for no new signature; a signature that the version was pulled with is published too.

    Returns:
      The entry of the version.

    Raises:
      NotAvailableError: the data folder does not hold the version.
      UnreachableError: the place cannot be written to now.
      VersionConflictError: the version is damaged, or the place has another revision of it.
      InvalidInputError: the address or the key cannot be used.
      HyperBOError: the disk of the place is full.
    """
    target = writable_place_at(url)
    version = find(reference, data_dir)
    if version.dataset.startswith(f"{INDEX_FOLDER}/"):
        raise InvalidInputError(
            f"dataset {version.dataset!r}",
            fix="give it another name, because a place keeps its index in that folder",
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
        # Also if it is published already, so that files that the place has lost are restored.
        _put_files(target, version, manifest)
        if signature is not None:
            _put_signature(target, entry, signature, is_asked=key is not None)
        _put_content(target, f"{entry.folder}/{MANIFEST_NAME}", content)
        if published is None:
            # A file may have changed between the verification and the copy.
            check_files(version.folder, manifest)
            published = _publish_entry(target, entry, _changes(version, manifest, data_dir))
        list_entries(target)
    return published


def _signature(version: Version, content: bytes, manifest: Manifest, key: StrPath | None) -> bytes | None:
    if key is not None:
        return sign(content, as_path(key, "key"), manifest.reference)
    path = version.folder / SIGNATURE_NAME
    return path.read_bytes() if path.exists() else None


def _existing(target: WritablePlace, entry: Entry) -> Entry | None:
    found = read_entry(target, entry.folder)
    if found is None:
        return None
    if found[0].revision != entry.revision:
        raise VersionConflictError(
            f"{entry.reference} is published at {target.url} with the revision {found[0].revision}, but the "
            f"one here has {entry.revision}; a published version never changes: publish a new version"
        )
    _LOGGER.info("%s is published at %s already; checking its files", entry.reference, target.url)
    return found[0]


def _claim(target: WritablePlace, entry: Entry) -> bool:
    """Claim the version for this revision, and return whether the claim is new.

    No process with another revision writes its files from now on.
    """
    name = f"{INDEX_FOLDER}/{entry.folder}.claim"
    try:
        target.create(name, entry.revision.encode())
        return True
    except FileExistsError as error:
        claimed = read_small(target, name, len(entry.revision)).decode(errors="replace")
        if claimed != entry.revision:
            raise VersionConflictError(
                f"{entry.reference} is claimed at {target.url} for the revision {claimed}; somebody "
                f"publishes it, or began to: publish a new version, or if that failed, remove "
                f"{target.url}/{name}"
            ) from error
        return False


def _put_files(target: WritablePlace, version: Version, manifest: Manifest) -> None:
    folder = f"{version.dataset}/{version.version}"
    there = target.sizes(folder)
    for file in manifest.files:
        name = f"{folder}/{file.name}"
        # A file of the right size may still be damaged, or left from a claim that was given up.
        if there.get(name) != file.size or _sha256(target, name) != file.sha256:
            target.put(name, version.folder / file.name)
            _LOGGER.info("%s: %s, %d bytes", manifest.reference, file.name, file.size)


def _remove_others(target: WritablePlace, entry: Entry, manifest: Manifest, is_first: bool) -> None:
    """Remove files of another revision, left from a claim that was given up."""
    names = {file.name for file in manifest.files}
    if not is_first:
        # Another process may just have published the same revision.
        names |= {MANIFEST_NAME, SIGNATURE_NAME}
    for name in target.sizes(entry.folder):
        if name.removeprefix(f"{entry.folder}/") not in names:
            target.remove(name)


def _put_signature(target: WritablePlace, entry: Entry, signature: bytes, *, is_asked: bool) -> None:
    """Write the signature, but never replace one, because others may rely on it."""
    name = f"{entry.folder}/{SIGNATURE_NAME}"
    try:
        target.create(name, signature)
    except FileExistsError as error:
        if is_asked and read_small(target, name, LARGEST_SIGNATURE) != signature:
            raise VersionConflictError(
                f"{target.url}/{name} is a signature by another key; remove it if you want to replace it"
            ) from error


def _put_content(target: WritablePlace, name: str, content: bytes) -> None:
    try:
        if read_small(target, name, len(content)) == content:
            return
    except (MissingError, VersionConflictError):  # There is none, or a larger one.
        pass
    target.replace(name, content)


def _sha256(place: Place, name: str) -> str:
    hashed = hashlib.sha256()
    with place.open(name) as opened:
        for chunk in opened.chunks:
            hashed.update(chunk)
    return hashed.hexdigest()


def _publish_entry(target: WritablePlace, entry: Entry, changes: Changes | None) -> Entry:
    try:
        create_entry(target, entry, changes)
    except FileExistsError:  # Another process published the same revision meanwhile.
        return _existing(target, entry) or entry
    return entry


def _changes(version: Version, manifest: Manifest, data_dir: StrPath | None) -> Changes | None:
    if manifest.parent is None:
        return None
    try:
        parent = find(f"{version.dataset}:{manifest.parent}", data_dir)
    except NotAvailableError:
        _LOGGER.info(
            "the entry does not say what changed, because the parent %s is not here", manifest.parent
        )
        return None
    return diff_folders(parent.folder, version.folder).changes
