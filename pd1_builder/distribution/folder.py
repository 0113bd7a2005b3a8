"""A folder of this machine as a place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError, VersionConflictError
from hyperbo.files import fsync
from hyperbo.staging import lock
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 1 << 20
_UNFINISHED = ".writing-"


class FolderPlace:
    """A folder of this machine, or of one that it has mounted.

    Args:
      folder: it; need not exist before something is written.

    Raises:
      InvalidInputError: there is something else of that name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        if folder.exists() and not folder.is_dir():
            raise InvalidInputError("is no folder", where=str(folder), fix="give the folder of a place")

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
        with path.open("rb") as source, self._writing(name) as file:
            shutil.copyfileobj(source, file, _CHUNK)

    def create(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`."""
        with self._writing(name, is_new=True) as file:
            file.write(content)

    def replace(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`."""
        with self._writing(name) as file:
            file.write(content)

    def remove(self, name: str) -> None:
        """See `places.WritablePlace`."""
        self._path(name).unlink(missing_ok=True)

    def alone(self) -> AbstractContextManager[None]:
        """See `places.WritablePlace`."""
        return lock(self._folder / "index.json", lambda: None)

    @contextmanager
    def _writing(self, name: str, *, is_new: bool = False) -> Iterator[IO[bytes]]:
        """A file that gets its name when it is complete."""
        target = self._path(name)
        with lock(self._folder / "index", lambda: None):
            # Whoever holds the lock knows that no other writes. Not beside the target: of a version's folder
            # every file is the version's.
            for dead in self._folder.glob(f"{_UNFINISHED}*"):
                dead.unlink()
            if is_new and target.exists():
                raise FileExistsError(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._folder / f"{_UNFINISHED}{target.name}"
            try:
                with temporary.open("xb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
            # The rename itself must survive a power cut.
            fsync(target.parent)

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
