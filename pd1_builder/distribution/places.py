"""Places: folders where versions are published, and what can be read from them and written to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from hyperbo.errors import NotAvailableError, VersionConflictError

# Even a slow connection needs less time for a small file.
_SECONDS_FOR_SMALL = 120.0


class MissingError(NotAvailableError):
    """A place does not have a file."""


class Opened(NamedTuple):
    """An open file of a place.

    Attributes:
      start: offset of the first byte that comes; 0 if the place cannot begin at a later one.
      chunks: the content from there on, as it is sent.
      decoded: the content without the encoding in which the place says that it sends it; None if it names no
        encoding. Only one of `chunks` and `decoded` can be read.
    """

    start: int
    chunks: Iterator[bytes]
    decoded: Iterator[bytes] | None = None


class Place(Protocol):
    """A folder from which files can be read, from their beginning or from an offset on."""

    @property
    def url(self) -> str:
        """Its address, for people."""
        ...

    def open(self, name: str, start: int = 0) -> AbstractContextManager[Opened]:
        """Read a file.

        Args:
          name: path of the file relative to the place, with slashes.
          start: offset to begin at, in bytes.

        Raises:
          MissingError: there is no such file.
          NotAvailableError: the file may not be read.
          UnreachableError: the file cannot be read now.
          VersionConflictError: the file lies outside the place.
        """
        ...


class WritablePlace(Place, Protocol):
    """A place to which versions can be published."""

    def put(self, name: str, path: Path) -> None:
        """Copy a file of this machine to the place, completely or not at all."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Write a new file in one step.

        Raises:
          FileExistsError: the file exists.
        """
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step. A reader sees either the old content or the new one."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file. It need not exist."""
        ...

    def alone(self) -> AbstractContextManager[object]:
        """A context that only one process can be in at a time, if the place has locks."""
        ...

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Sizes in bytes of the files below a folder, by their sorted paths relative to the place."""
        ...


def read_small(place: Place, name: str, largest: int) -> bytes:
    """The content of a small file, of at most `largest` bytes. Reading stops at this and at a limit of time.

    Raises:
      MissingError: there is no such file.
      NotAvailableError: the file may not be read, or takes longer than two minutes.
      UnreachableError: the file cannot be read now.
      VersionConflictError: the file is larger, or lies outside the place.
    """
    content, deadline = bytearray(), time.monotonic() + _SECONDS_FOR_SMALL
    with place.open(name) as opened:
        for chunk in opened.chunks if opened.decoded is None else opened.decoded:
            content += chunk
            if time.monotonic() > deadline:
                raise NotAvailableError(
                    f"{place.url}/{name} did not end within {_SECONDS_FOR_SMALL:g} seconds; "
                    "try again later, or use another place"
                )
            if len(content) > largest:
                raise VersionConflictError(
                    f"{place.url}/{name} has more than {largest} bytes, too many for such a file; "
                    "tell the owner of the place"
                )
    return bytes(content)
