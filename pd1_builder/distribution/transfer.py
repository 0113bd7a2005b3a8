"""Bringing one file here: what is here already is kept, what is wrong is fetched again, or elsewhere."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
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
    transfer = _Transfer(digest, f"{folder}/{digest.name}", path, patience, on_bytes, stop)
    for source in places:
        # What was here before may be wrong, or what came damaged on its way: once more from nothing. A server
        # that says it compressed what it was asked for as it is means the file itself, or has done so.
        for is_last in (False, True):
            try:
                transfer.complete(source, takes_decoded=is_last)
                return
            except (NotAvailableError, VersionConflictError) as error:
                was_wrong |= isinstance(error, VersionConflictError)
                faults.append(str(error))
                break
            except _WrongBytesError:
                on_bytes(-_truncate(path))
                if is_last:
                    was_wrong = True
                    faults.append(f"{source.url}/{transfer.name} has other bytes than the manifest says")
    if was_wrong:
        raise VersionConflictError("; ".join([*faults, "pull from another place"]))
    raise NotAvailableError("; ".join([*faults, "what is here is kept: pull again, or from another place"]))


@dataclass(frozen=True)
class _Transfer:
    """One file on its way here; `name` is that in a place, the rest as in `fetch_file`."""

    digest: FileDigest
    name: str
    path: Path
    patience: Patience
    on_bytes: Callable[[int], None]
    stop: threading.Event

    def complete(self, source: Place, *, takes_decoded: bool) -> None:
        """Bring what is not here yet from one place, as it is sent or decoded where it says it is encoded."""
        hashed = hashlib.sha256()
        furthest = size = _hash_file(self.path, hashed)
        failed = 0
        while size < self.digest.size:
            try:
                for chunk in self._append(source, size, takes_decoded=takes_decoded):
                    hashed.update(chunk)
                    size += len(chunk)
                if size < self.digest.size:
                    raise UnreachableError(
                        f"{source.url}/{self.name} ends after {size} of {self.digest.size} bytes"
                    )
            except UnreachableError as error:
                failed = 1 if size > furthest else failed + 1
                furthest = max(furthest, size)
                if failed >= self.patience.attempts:
                    raise
                if self.stop.wait(self.patience.seconds(failed, error)):
                    raise Stopped from error
        if hashed.hexdigest() != self.digest.sha256:
            raise _WrongBytesError

    def _append(self, source: Place, size: int, *, takes_decoded: bool) -> Iterator[bytes]:
        """Write what follows so many bytes, and yield it."""
        with source.open(self.name, size) as opened, self.path.open("r+b") as file:
            file.seek(size)
            # A place that cannot begin later sends again what is here.
            known = size - opened.start
            for sent in opened.decoded if takes_decoded and opened.decoded else opened.chunks:
                if self.stop.is_set():
                    raise Stopped
                chunk, known = sent[known:], max(known - len(sent), 0)
                if file.tell() + len(chunk) > self.digest.size:
                    raise _WrongBytesError
                file.write(chunk)
                self.on_bytes(len(chunk))
                yield chunk


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
