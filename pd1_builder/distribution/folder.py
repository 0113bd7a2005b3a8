"""A folder of this machine as a place."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hyperbo.errors import NotAvailableError, UnreachableError, VersionConflictError
from hyperbo.files import fsync, write_atomically
from hyperbo.staging import lock
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 1 << 20


class FolderPlace:
    """A folder of this machine, or of one that it has mounted.

    Args:
      folder: it; need not exist before something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    @property
    def url(self) -> str:
        """The folder."""
        return str(self._folder)

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """See `places.Place`."""
        path = self._path(name)
        try:
            # What is no file, such as a pipe, might be waited for without end.
            if path.exists() and not path.is_file():
                raise MissingError(f"{path} is no file")
            stream = path.open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise MissingError(f"{path} is not there") from error
        except PermissionError as error:
            raise NotAvailableError(f"{path} may not be read") from error
        except OSError as error:
            raise UnreachableError(f"{path} cannot be read: {error}") from error
        with stream:
            stream.seek(start)
            yield Opened(start, _chunks(stream, path))

    def put(self, name: str, path: Path) -> None:
        """See `places.WritablePlace`."""
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            with path.open("rb") as source, temporary.open("xb") as copy:
                while chunk := source.read(_CHUNK):
                    copy.write(chunk)
                copy.flush()
                os.fsync(copy.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        fsync(target.parent)

    def create(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`."""
        path = self._path(name)
        # One lock for all of a place: its file stays, and is the only one that no version needs.
        with lock(self._folder / "index", lambda: None):
            if path.exists():
                raise FileExistsError(path)
            write_atomically(path, content)

    def replace(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`."""
        write_atomically(self._path(name), content)

    def sizes(self, folder: str) -> Mapping[str, int]:
        """See `places.WritablePlace`; what is hidden is nobody's file."""
        paths = (path for path in sorted(self._path(folder).rglob("*")) if not path.name.startswith("."))
        return {
            path.relative_to(self._folder).as_posix(): path.stat().st_size for path in paths if path.is_file()
        }

    def _path(self, name: str) -> Path:
        path = self._folder / name
        try:
            # A link in the folder could name any file of this machine.
            is_inside = not Path(name).is_absolute() and path.resolve() == self._folder.resolve() / name
        except (OSError, RuntimeError):  # Links that lead to each other.
            is_inside = False
        if not is_inside:
            raise VersionConflictError(
                f"{path} is or lies behind a symbolic link, or outside the folder; put the file in its place"
            )
        return path


def _chunks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        while chunk := stream.read(_CHUNK):
            yield chunk
    except OSError as error:
        raise UnreachableError(f"{path} cannot be read: {error}") from error
