"""Bringing one file here: what is here already is kept, what is wrong is fetched again, or elsewhere."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo.errors import NotAvailableError, UnreachableError, VersionConflictError
from pd1_builder.distribution.places import Place
from pd1_builder.manifest import FileDigest

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Patience:
    """How a place that fails is tried again.

    Attributes:
      attempts: that bring nothing new before the place is given up.
      first_wait: seconds before the second attempt; each further wait is twice as long.
    """

    attempts: int = 4
    first_wait: float = 0.5

    def seconds(self, failed: int, error: UnreachableError) -> float:
        """How long to wait after so many attempts in a row that failed, the last one by this error."""
        return max(self.first_wait * 2 ** (failed - 1), error.retry_after)


class _WrongBytesError(Exception):
    """A file whose bytes are not those of its digest."""


class Stopped(Exception):  # noqa: N818 - no error: somebody else failed, or the user wants it to end
    """The transfer was asked to end."""


def fetch_file(
    digest: FileDigest,
    folder: str,
    places: Sequence[Place],
    path: Path,
    *,
    patience: Patience,
    on_bytes: Callable[[int], None],
    stop: threading.Event,
) -> None:
    """Bring a file here from the first place that has it right.

    Args:
      digest: what it is.
      folder: where it lies in each place.
      places: tried in this order.
      path: where it goes; bytes that an earlier attempt left there are taken as its beginning, and the file
        is correct when this returns.
      patience: with a place that fails.
      on_bytes: called with the number of bytes that came; negative where some had to be thrown away.
      stop: ends the transfer when set.

    Raises:
      VersionConflictError: a place has something else, and no other place has the right bytes.
      NotAvailableError: no place has it, or none could be read.
      OSError: it cannot be written.
      Stopped: `stop` was set.
    """
    faults: list[str] = []
    was_wrong = False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    for source in places:
        where = f"{source.url}/{folder}/{digest.name}"
        # What was here before may be wrong, or what came damaged on its way: once more from nothing.
        for is_last in (False, True):
            try:
                _complete(digest, folder, source, path, patience, on_bytes, stop)
                return
            except (NotAvailableError, VersionConflictError) as error:
                was_wrong |= isinstance(error, VersionConflictError)
                faults.append(str(error))
                break
            except _WrongBytesError:
                on_bytes(-_truncate(path))
                if is_last:
                    was_wrong = True
                    faults.append(f"{where} has other bytes than the manifest says")
                    break
    if was_wrong:
        raise VersionConflictError("; ".join([*faults, "pull from another place"]))
    raise NotAvailableError("; ".join([*faults, "what is here is kept: pull again, or from another place"]))


def _complete(
    digest: FileDigest,
    folder: str,
    source: Place,
    path: Path,
    patience: Patience,
    on_bytes: Callable[[int], None],
    stop: threading.Event,
) -> None:
    hashed = hashlib.sha256()
    furthest = _hash_file(path, hashed)
    if furthest > digest.size:
        raise _WrongBytesError
    failed, size = 0, furthest
    while size < digest.size:
        try:
            with source.open(f"{folder}/{digest.name}", size) as opened, path.open("r+b") as file:
                if opened.start != size:  # It cannot begin later than at the beginning.
                    on_bytes(-_truncate(path))
                    hashed, size = hashlib.sha256(), 0
                file.seek(size)
                for chunk in opened.chunks:
                    if stop.is_set():
                        raise Stopped
                    if size + len(chunk) > digest.size:
                        raise _WrongBytesError
                    file.write(chunk)
                    hashed.update(chunk)
                    size += len(chunk)
                    on_bytes(len(chunk))
            if size < digest.size:
                raise UnreachableError(
                    f"{source.url}/{folder}/{digest.name} ends after {size} of {digest.size} bytes"
                )
        except UnreachableError as error:
            failed = 1 if size > furthest else failed + 1
            furthest = max(furthest, size)
            if failed >= patience.attempts:
                raise
            if stop.wait(patience.seconds(failed, error)):
                raise Stopped from error
    if hashed.hexdigest() != digest.sha256:
        raise _WrongBytesError


def _hash_file(path: Path, hashed: Any) -> int:
    size = 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            hashed.update(chunk)
            size += len(chunk)
    return size


def _truncate(path: Path) -> int:
    """Throw away what a file holds; the number of bytes that were."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate()
    return size
