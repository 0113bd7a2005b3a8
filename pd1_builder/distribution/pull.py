"""Pulling a version from a place. It appears in the data folder complete and checked, or not at all."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.storage.paths import StrPath
from hyperbo.storage.staging import lock, publish
from pd1_builder.distribution.addresses import place_at
from pd1_builder.distribution.places import Place
from pd1_builder.distribution.remote_versions import RemoteVersion, Requirements, find_remote_version
from pd1_builder.distribution.signatures import check_signature
from pd1_builder.distribution.transfer import RetryPolicy, fetch_file
from pd1_builder.version.advice import SOURCES_VARIABLE
from pd1_builder.version.catalog import Version, find_here, version_folder
from pd1_builder.version.disk_errors import explaining_disk_errors
from pd1_builder.version.manifest import MANIFEST_NAME, SIGNATURE_NAME, FileDigest, read_manifest
from pd1_builder.version.pull_record import (
    check_revision,
    describe_origin,
    pull_folder,
    pull_folders,
    record_pull,
    revision_of,
)
from pd1_builder.version.verification import check_files

_LOGGER = logging.getLogger(__name__)
KEY_VARIABLE = "HYPERBO_DATA_PUBLIC_KEY"
# The largest version that is pulled, unless the user allows more: a manifest may come from a stranger.
LARGEST_VERSION = 50 * 10**9
_AT_ONCE = 4
_ADVICE = "the files so far are kept: free some space and pull it again"
OnProgress = Callable[[int, int], None]


def configured_places() -> tuple[str, ...]:
    """The addresses in `$HYPERBO_DATA_SOURCES`, which are separated by blanks; none if it is not set."""
    return tuple(os.environ.get(SOURCES_VARIABLE, "").split())


def trusted_key(public_key: str | None) -> str | None:
    """The public key to check signatures with: the given one, else that of `$HYPERBO_DATA_PUBLIC_KEY`."""
    return public_key if public_key is not None else os.environ.get(KEY_VARIABLE) or None


def pull(
    reference: str,
    source: StrPath | Sequence[StrPath] = (),
    *,
    data_dir: StrPath | None = None,
    revision: str | None = None,
    public_key: str | None = None,
    largest: int = LARGEST_VERSION,
    retries: RetryPolicy | None = None,
    on_progress: OnProgress = lambda done, total: None,
) -> Version:
    """Copy a published version into the data folder. If the version is there already, no network is used.

    An interrupted pull keeps its files, and the next one continues with them. The version appears by one
    rename when every file has the size and the SHA-256 of the manifest. If several processes pull the same
    version at once, one does it and the others wait.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest one at the first place that
        answers, or if no place is known, the newest one in the data folder.
      source: address of a place, or several that are tried in this order; none for `configured_places`.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      revision: revision that the version must have; None for any.
      public_key: public key, or the path of its file, that must have signed the manifest; None for that of
        `$HYPERBO_DATA_PUBLIC_KEY`. If that is not set either, no signature is needed.
      largest: largest size of the version in bytes.
      retries: how often a failing place is tried again; None for the default.
      on_progress: called with the number of bytes so far and in all, from several threads.

    Returns:
      The version in the data folder.

    Raises:
      InvalidInputError: a reference, address, revision or key is malformed, or no place is known.
      NotAvailableError: no place has the version, or none could be read; the message says why for each.
      VersionConflictError: the version at a place or in the data folder is damaged, has another revision, or
        is not signed by the key.
      HyperBOError: the version is too large, or cannot be written.
    """
    check_revision(revision)
    requirements = Requirements(reference, revision, trusted_key(public_key), largest)
    sources = ((source,) if isinstance(source, str | os.PathLike) else tuple(source)) or configured_places()
    # Without a version in the reference, only a place knows the newest one.
    here = find_here(reference, data_dir) if ":" in reference or not sources else None
    if here is not None:
        return _check_here(here, requirements)
    if not sources:
        raise InvalidInputError(
            f"{reference} is not in the data folder, and no place to pull it from is known",
            fix=f"name one, such as --from https://example.org/data, or set {SOURCES_VARIABLE}",
        )
    places = _usable(sources)
    retries = retries or RetryPolicy()
    found, origin = find_remote_version(requirements, places, retries)
    name = found.entry.reference
    target = version_folder(found.entry.dataset, found.entry.version, data_dir)
    version = Version(found.entry.dataset, found.entry.version, target)

    def tell() -> None:
        _LOGGER.info("%s: another process is building, pulling or removing it; waiting", name)

    if not target.exists():
        with explaining_disk_errors(name, _ADVICE), lock(target, tell):
            if not target.exists():
                # First the place that the manifest is from; the others are alternatives.
                others = [each for each in places if each is not origin]
                _pull_files(found, [origin, *others], target, retries, on_progress)
                _LOGGER.info("%s: pulled from %s", name, origin.url)
                return version
    _require_same_records(target, found)
    return _check_here(version, requirements)


def _usable(sources: Sequence[StrPath]) -> list[Place]:
    """The places, at least one, at those addresses for which the packages are installed."""
    places: list[Place] = []
    faults: list[NotAvailableError] = []
    for url in sources:
        try:
            places.append(place_at(url))
        except NotAvailableError as error:
            faults.append(error)
            _LOGGER.info("%s", error)
    if not places:
        raise NotAvailableError("; ".join(map(str, faults)))
    return places


def _check_here(version: Version, requirements: Requirements) -> Version:
    check_local(version, requirements.revision, requirements.public_key)
    origin = describe_origin(version.folder)
    _LOGGER.info("%s:%s is in the data folder already, %s", version.dataset, version.version, origin)
    return version


def check_local(version: Version, revision: str | None, public_key: str | None) -> None:
    """Check a version in the data folder against a revision and a public key, each of which may be None.

    If either is given, all files of the version are checked too. The key may be the path of its file.

    Raises:
      InvalidInputError: the key is malformed.
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


def _require_same_records(target: Path, found: RemoteVersion) -> None:
    # Not the revision: two builds of the same records differ in bytes, and the version may be built here.
    if read_manifest(target).content_hash != found.manifest.content_hash:
        raise VersionConflictError(
            f"{target} holds other records than {found.entry.reference} at the place; "
            "move it away, or use another data folder"
        )


def _pull_files(
    found: RemoteVersion, places: Sequence[Place], target: Path, retries: RetryPolicy, on_progress: OnProgress
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
    _fetch_all(files, found.entry.folder, places, staging, retries, tally)
    record_pull(target, found.entry.revision, places[0].url)
    publish(staging, target)
    for other in pull_folders(target):
        shutil.rmtree(other)


def _fetch_all(
    files: Sequence[FileDigest],
    folder: str,
    places: Sequence[Place],
    staging: Path,
    retries: RetryPolicy,
    tally: _Tally,
) -> None:
    stop = threading.Event()
    fetch = partial(fetch_file, folder=folder, places=places, retries=retries, on_bytes=tally.add, stop=stop)
    # The block ends only when all threads have ended. The lock must be held while one of them writes.
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull") as executor:
        try:
            # The largest file first, so that the last one is small.
            ordered = sorted(files, key=lambda file: -file.size)
            futures = [executor.submit(fetch, file, path=staging / file.name) for file in ordered]
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


class _Tally:
    """Counts the bytes so far, for all threads."""

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
