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
from pd1_builder.catalog import Version, find, version_folder
from pd1_builder.distribution.places import Place, place
from pd1_builder.distribution.published import Published, Wanted, first_published
from pd1_builder.distribution.signatures import check_signature
from pd1_builder.distribution.transfer import Patience, fetch_file
from pd1_builder.manifest import FileDigest, read_manifest
from pd1_builder.manifest_fields import MANIFEST_NAME, SIGNATURE_NAME
from pd1_builder.pulled import check_revision, pull_folder, pull_folders, record_pull, require_revision
from pd1_builder.staging import explaining_disk_errors, lock_version, publish

_LOGGER = logging.getLogger(__name__)
SOURCES_VARIABLE = "HYPERBO_DATA_SOURCES"
KEY_VARIABLE = "HYPERBO_DATA_PUBLIC_KEY"
# What a stranger's manifest may ask of a disk, unless the user allows more.
LARGEST_VERSION = 50 << 30
_AT_ONCE = 4
_ADVICE = "what is here of it is kept: free some space and pull it again"
OnProgress = Callable[[int, int], None]


def configured_sources() -> tuple[str, ...]:
    """The places of `$HYPERBO_DATA_SOURCES`, with blanks between them; none where it is not set."""
    return tuple(os.environ.get(SOURCES_VARIABLE, "").split())


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
      reference: `<name>/<config>:<version>`; without a version, the newest of the first place that answers.
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
    wanted = Wanted(reference, revision, public_key or os.environ.get(KEY_VARIABLE) or None, largest)
    if ":" in reference and (here := _here(wanted, data_dir)):
        return here
    sources = (source,) if isinstance(source, str | Path) else source
    places = [place(url) for url in sources or configured_sources()]
    if not places:
        raise InvalidInputError(
            f"{reference} is not here, and no place to pull it from is known",
            fix=f"name one, such as --from https://example.org/data, or set {SOURCES_VARIABLE}",
        )
    patience = patience or Patience()
    found, origin = first_published(wanted, places, patience)
    name = found.entry.reference
    target = version_folder(found.entry.dataset, found.entry.version, data_dir)
    with (
        explaining_disk_errors(name, _ADVICE),
        lock_version(target, lambda: _LOGGER.info("%s: another process makes it; waiting", name)),
    ):
        if target.exists():
            _require_same_records(target, found)
            return _checked(Version(found.entry.dataset, found.entry.version, target), wanted)
        # The place that the manifest is from goes first, the others stand in for it.
        others = [each for each in places if each is not origin]
        _pull_files(found, [origin, *others], target, patience, on_progress)
    _LOGGER.info("%s: pulled, revision %s", name, found.entry.revision)
    return Version(found.entry.dataset, found.entry.version, target)


def _here(wanted: Wanted, data_dir: Path | None) -> Version | None:
    try:
        version = find(wanted.reference, data_dir)
    except NotAvailableError:
        return None
    return _checked(version, wanted)


def _checked(version: Version, wanted: Wanted) -> Version:
    """A version that is here, held to the revision and the key of the user."""
    require_revision(version.folder, wanted.revision)
    if wanted.public_key:
        manifest, signature = version.folder / MANIFEST_NAME, version.folder / SIGNATURE_NAME
        signed = signature.read_bytes() if signature.exists() else None
        check_signature(manifest.read_bytes(), signed, wanted.public_key, str(manifest))
    return version


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
