"""Pulling a published version: all of it, checked, or nothing that anyone could take for it."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.catalog import Version, find_here, version_folder
from pd1_builder.distribution.addresses import place
from pd1_builder.distribution.places import Place
from pd1_builder.distribution.published import Published, Wanted, first_published
from pd1_builder.distribution.signatures import check_signature
from pd1_builder.distribution.transfer import Patience, fetch_file
from pd1_builder.manifest import FileDigest, read_manifest
from pd1_builder.manifest_fields import MANIFEST_NAME, SIGNATURE_NAME
from pd1_builder.pulled import (
    check_revision,
    pull_folder,
    pull_folders,
    record_pull,
    revision_of,
    where_from,
)
from pd1_builder.staging import explaining_disk_errors, lock_version, publish
from pd1_builder.verification import check_files

_LOGGER = logging.getLogger(__name__)
SOURCES_VARIABLE = "HYPERBO_DATA_SOURCES"
KEY_VARIABLE = "HYPERBO_DATA_PUBLIC_KEY"
# What a stranger's manifest may ask of a disk, unless the user allows more.
LARGEST_VERSION = 50 * 10**9
_AT_ONCE = 4
_ADVICE = "what is here of it is kept: free some space and pull it again"
OnProgress = Callable[[int, int], None]


def configured_sources() -> tuple[str, ...]:
    """The places of `$HYPERBO_DATA_SOURCES`, with blanks between them; none where it is not set."""
    return tuple(os.environ.get(SOURCES_VARIABLE, "").split())


def trusted_key(public_key: str | None) -> str | None:
    """The key that a manifest must be signed by: the one given, else that of `$HYPERBO_DATA_PUBLIC_KEY`."""
    return public_key if public_key is not None else os.environ.get(KEY_VARIABLE) or None


def pull(
    reference: str,
    source: str | Path | Sequence[str | Path] = (),
    *,
    data_dir: Path | None = None,
    revision: str | None = None,
    public_key: str | None = None,
    largest: int = LARGEST_VERSION,
    patience: Patience | None = None,
    on_progress: OnProgress = lambda done, total: None,
) -> Version:
    """Bring a published version here; at once, and without a network, where it is here already.

    What an attempt that ended early has brought is kept, and the next one goes on from there. The version
    appears by one rename when every file has the size and SHA-256 of its manifest. Several processes may pull
    the same at once: one does, the others wait.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest of the first place that answers,
        or where no place is known the newest that is here.
      source: place, by URL or folder, or several that are tried in this order; none: `configured_sources`.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      revision: SHA-256 that the manifest must have; None for any.
      public_key: key, or file of one, by which the manifest must be signed; None for that of
        `$HYPERBO_DATA_PUBLIC_KEY`, and without one none.
      largest: bytes that the version may have.
      patience: with a place that fails.
      on_progress: called with the bytes that are here and the bytes in all, from several threads.

    Returns:
      The version that is here.

    Raises:
      InvalidInputError: a reference, place, revision or key is malformed, or no place was given.
      NotAvailableError: no place has the version, or none could be read; says what each said.
      VersionConflictError: what a place has, or what is here, is not what it should be.
      HyperBOError: the version is too large, or cannot be written.
    """
    check_revision(revision)
    wanted = Wanted(reference, revision, trusted_key(public_key), largest)
    sources = ((source,) if isinstance(source, str | Path) else tuple(source)) or configured_sources()
    # Whether there is a newer one, only a place can say.
    here = find_here(reference, data_dir) if ":" in reference or not sources else None
    if here is not None:
        return _held(here, wanted)
    if not sources:
        raise InvalidInputError(
            f"{reference} is not here, and no place to pull it from is known",
            fix=f"name one, such as --from https://example.org/data, or set {SOURCES_VARIABLE}",
        )
    places = _usable(sources)
    patience = patience or Patience()
    found, origin = first_published(wanted, places, patience)
    name = found.entry.reference
    target = version_folder(found.entry.dataset, found.entry.version, data_dir)
    version = Version(found.entry.dataset, found.entry.version, target)
    if not target.exists():
        with (
            explaining_disk_errors(name, _ADVICE),
            lock_version(target, lambda: _LOGGER.info("%s: another process makes it; waiting", name)),
        ):
            if not target.exists():
                # The place that the manifest is from goes first, the others stand in for it.
                others = [each for each in places if each is not origin]
                _pull_files(found, [origin, *others], target, patience, on_progress)
                _LOGGER.info("%s: pulled from %s", name, origin.url)
                return version
    _require_same_records(target, found)
    return _held(version, wanted)


def _usable(sources: Sequence[str | Path]) -> list[Place]:
    """The places that there are means to read; at least one."""
    places: list[Place] = []
    faults: list[NotAvailableError] = []
    for url in sources:
        try:
            places.append(place(url))
        except NotAvailableError as error:
            faults.append(error)
            _LOGGER.info("%s", error)
    if not places:
        raise NotAvailableError("; ".join(map(str, faults)))
    return places


def _held(version: Version, wanted: Wanted) -> Version:
    hold(version, wanted.revision, wanted.public_key)
    _LOGGER.info("%s:%s is here already, %s", version.dataset, version.version, where_from(version.folder))
    return version


def hold(version: Version, revision: str | None, public_key: str | None) -> None:
    """Hold a version that is here to a revision and to a key; where either is given, every byte of it.

    Raises:
      InvalidInputError: the key is none.
      VersionConflictError: the version has another revision, is not signed by the key, or is damaged.
    """
    if revision is None and public_key is None:
        return
    manifest, signature = version.folder / MANIFEST_NAME, version.folder / SIGNATURE_NAME
    if revision is not None and revision_of(version.folder) != revision:
        raise VersionConflictError(
            f"{version.folder} has the revision {revision_of(version.folder)}, not {revision}; "
            f"move it away, and pull {version.dataset}:{version.version} again"
        )
    if public_key is not None:
        signed = signature.read_bytes() if signature.exists() else None
        check_signature(manifest.read_bytes(), signed, public_key, str(manifest))
    check_files(version.folder, read_manifest(version.folder))


def _require_same_records(target: Path, found: Published) -> None:
    # Two builds of the same records differ in bytes: what was built here need not be that of the place.
    if read_manifest(target).content_hash != found.manifest.content_hash:
        raise VersionConflictError(
            f"{target} holds other records than {found.entry.reference} at the place; "
            "move it away, or use another folder of versions"
        )


def _pull_files(
    found: Published, places: Sequence[Place], target: Path, patience: Patience, on_progress: OnProgress
) -> None:
    staging = pull_folder(target, found.entry.revision)
    staging.mkdir(exist_ok=True)
    (staging / MANIFEST_NAME).write_bytes(found.content)
    if found.signature is not None:
        (staging / SIGNATURE_NAME).write_bytes(found.signature)
    files = found.manifest.files
    tally = _Tally(sum(file.size for file in files), on_progress)
    tally.add(sum(path.stat().st_size for file in files if (path := staging / file.name).exists()))
    free = shutil.disk_usage(staging).free
    if tally.left > free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    _fetch_all(files, found.entry.folder, places, staging, patience, tally)
    record_pull(target, found.entry.revision, places[0].url)
    publish(staging, target)
    for other in pull_folders(target):
        shutil.rmtree(other)


def _fetch_all(
    files: Sequence[FileDigest],
    folder: str,
    places: Sequence[Place],
    staging: Path,
    patience: Patience,
    tally: _Tally,
) -> None:
    stop = threading.Event()
    # Not left before its threads have ended: while one writes, the lock must be held.
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull") as executor:
        try:
            # The largest first: what is brought last is small then.
            futures = [
                executor.submit(
                    fetch_file,
                    file,
                    folder,
                    places,
                    staging / file.name,
                    patience=patience,
                    on_bytes=tally.add,
                    stop=stop,
                )
                for file in sorted(files, key=lambda file: -file.size)
            ]
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


class _Tally:
    """Counts the bytes that are here, for all threads."""

    def __init__(self, total: int, on_progress: OnProgress) -> None:
        self._total, self._on_progress = total, on_progress
        self._done, self._lock = 0, threading.Lock()

    @property
    def left(self) -> int:
        return self._total - self._done

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._on_progress(self._done, self._total)
