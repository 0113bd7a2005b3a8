"""Places where versions are published: what can be read there, and written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from hyperbo.errors import NotAvailableError, VersionConflictError

# Not even a slow line needs so long for a small file.
_SECONDS_FOR_SMALL = 120.0


class MissingError(NotAvailableError):
    """A file that a place does not have."""


class Opened(NamedTuple):
    """A file being read.

    Attributes:
      start: offset of the first byte that comes; 0 where the place cannot begin later.
      chunks: its content from there on, as it is sent.
      decoded: the same without the encoding that the place says it is sent in; None where it says none. Only
        one of the two can be read.
    """

    start: int
    chunks: Iterator[bytes]
    decoded: Iterator[bytes] | None = None


class Place(Protocol):
    """A folder that can be read, whole files or from an offset on."""

    @property
    def url(self) -> str:
        """Where it is, for people."""
        ...

    def open(self, name: str, start: int = 0) -> AbstractContextManager[Opened]:
        """Read a file.

        Args:
          name: relative to the place, with slashes.
          start: offset to begin at.

        Raises:
          MissingError: there is no such file.
          NotAvailableError: it may not be read.
          UnreachableError: it cannot be read now.
          VersionConflictError: it lies outside the place.
        """
        ...


class WritablePlace(Place, Protocol):
    """A folder that versions can be published to."""

    def put(self, name: str, path: Path) -> None:
        """Write a file, whole or not at all, from one of this machine."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Write a file in one step unless there is one.

        Raises:
          FileExistsError: there is.
        """
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step: a reader sees the old content or the new."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        ...

    def alone(self) -> AbstractContextManager[object]:
        """Keep other processes from this block meanwhile, where the place has a means to."""
        ...

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Bytes of the files below a folder, by name relative to the place, sorted; none without a folder."""
        ...


def read_small(source: Place, name: str, largest: int) -> bytes:
    """The content of a file that must be small: what is larger, or does not come to an end, is not read on.

    Raises:
      VersionConflictError: it is larger than `largest` bytes.
      NotAvailableError: it takes longer than two minutes; or as `Place.open`.
      UnreachableError: as `Place.open`.
    """
    content, deadline = bytearray(), time.monotonic() + _SECONDS_FOR_SMALL
    with source.open(name) as opened:
        for chunk in opened.chunks if opened.decoded is None else opened.decoded:
            content += chunk
            if time.monotonic() > deadline:
                raise NotAvailableError(
                    f"{source.url}/{name} has not come to its end within {_SECONDS_FOR_SMALL:g} seconds; "
                    "try again later, or another place"
                )
            if len(content) > largest:
                raise VersionConflictError(
                    f"{source.url}/{name} has more than {largest} bytes, as no such file has; "
                    "ask who publishes it"
                )
    return bytes(content)
