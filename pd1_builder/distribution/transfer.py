"""The transfer of one file from a place: it continues after interruptions and corrects wrong bytes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperbo.errors import NotAvailableError, UnreachableError, VersionConflictError
from pd1_builder.distribution.places import Place
from pd1_builder.version.manifest import FileDigest


@dataclass(frozen=True)
class RetryPolicy:
    """How often a failing place is tried again.

    Attributes:
      attempts: number of attempts without progress after which a place is given up.
      first_wait: seconds before the second attempt. Each further wait is twice as long.
    """

    attempts: int = 4
    first_wait: float = 0.5

    def wait(self, failed: int, error: UnreachableError) -> float:
        """Seconds to wait after a number of failed attempts in a row, the last of which raised this error."""
        return max(self.first_wait * 2 ** (failed - 1), error.retry_after)


class _WrongBytesError(Exception):
    """The bytes of a file are not those of its digest."""


class Stopped(Exception):  # noqa: N818 - not an error of its own: another transfer failed, or the user interrupted
    """The transfer was told to end."""


def fetch_file(
    digest: FileDigest,
    folder: str,
    places: Sequence[Place],
    path: Path,
    *,
    retries: RetryPolicy,
    on_bytes: Callable[[int], None],
    stop: threading.Event,
) -> None:
    """Copy a file of a folder of places from the first place that has the right bytes.

    Bytes that an earlier attempt left at the path count as its beginning. `on_bytes` is told the number
    of bytes that came; a negative number if bytes were thrown away. `stop` ends the transfer when it is set.

    Raises:
      VersionConflictError: a place has wrong bytes, and no other place has the right ones.
      NotAvailableError: no place has the file, or none could be read.
      OSError: the file cannot be written.
      Stopped: `stop` was set.
    """
    faults: list[str] = []
    was_wrong = False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    transfer = _Transfer(digest, f"{folder}/{digest.name}", path, retries, on_bytes, stop)
    for place in places:
        # If the bytes are wrong, try once more from the beginning: earlier bytes may have been wrong, or some
        # were damaged on the way. If a server says that it sends the file compressed, although it was asked
        # not to, either the stored file is compressed or the server compressed it. The second attempt
        # decompresses.
        for is_last in (False, True):
            try:
                transfer.complete(place, takes_decoded=is_last)
                return
            except (NotAvailableError, VersionConflictError) as error:
                was_wrong |= isinstance(error, VersionConflictError)
                faults.append(str(error))
                break
            except _WrongBytesError:
                size = path.stat().st_size
                path.write_bytes(b"")
                on_bytes(-size)
                if is_last:
                    was_wrong = True
                    faults.append(f"{place.url}/{transfer.name} has other bytes than the manifest says")
    if was_wrong:
        raise VersionConflictError("; ".join([*faults, "pull from another place"]))
    raise NotAvailableError(
        "; ".join([*faults, "the bytes so far are kept: pull again, or from another place"])
    )


@dataclass(frozen=True)
class _Transfer:
    """The transfer of one file. `name` is its path in a place; the other fields are those of `fetch_file`."""

    digest: FileDigest
    name: str
    path: Path
    retries: RetryPolicy
    on_bytes: Callable[[int], None]
    stop: threading.Event

    def complete(self, place: Place, *, takes_decoded: bool) -> None:
        """Copy the missing bytes from one place, as they are sent, or decoded if the place says how."""
        with self.path.open("rb") as stream:
            hashed = hashlib.file_digest(stream, "sha256")
        furthest = size = self.path.stat().st_size
        failed = 0
        while size < self.digest.size:
            try:
                for chunk in self._append(place, size, takes_decoded=takes_decoded):
                    hashed.update(chunk)
                    size += len(chunk)
                if size < self.digest.size:
                    raise UnreachableError(
                        f"{place.url}/{self.name} ends after {size} of {self.digest.size} bytes"
                    )
            except UnreachableError as error:
                failed = 1 if size > furthest else failed + 1
                furthest = max(furthest, size)
                if failed >= self.retries.attempts:
                    raise
                if self.stop.wait(self.retries.wait(failed, error)):
                    raise Stopped from error
        if hashed.hexdigest() != self.digest.sha256:
            raise _WrongBytesError

    def _append(self, place: Place, size: int, *, takes_decoded: bool) -> Iterator[bytes]:
        """Write the bytes after the first `size` ones, and yield them."""
        with place.open(self.name, size) as opened, self.path.open("r+b") as file:
            file.seek(size)
            # A place that cannot begin at an offset sends the known bytes again.
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
