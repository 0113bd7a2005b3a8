"""The places that can be written to: a folder of this machine, or one in an object store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError, VersionConflictError
from hyperbo.storage.atomic import fsync
from hyperbo.storage.installation import require_extras
from hyperbo.storage.staging import lock
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 1 << 20
_UNFINISHED = ".writing-"
_STORE_CHUNK = 4 << 20
# The extra that brings the package for a scheme.
_EXTRAS = {"s3": "s3", "gs": "gcs"}
_NO_BUCKET = "cannot be written, because there is no such bucket; create it, or correct the address"


class FolderPlace:
    """A folder of this machine, local or mounted.

    Args:
      folder: the folder. It is created when something is written.

    Raises:
      InvalidInputError: something else has that name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        if folder.exists() and not folder.is_dir():
            raise InvalidInputError("is not a folder", where=str(folder), fix="give the folder of a place")

    @property
    def url(self) -> str:
        """The path of the folder."""
        return str(self._folder)

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """Read a file, as `Place.open` says."""
        path = self._path(name)
        try:
            # Reading from a pipe, for example, could wait forever.
            if path.exists() and not path.is_file():
                raise MissingError(f"{path} is not a file")
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
        """Copy a file of this machine to the place, completely or not at all."""
        with path.open("rb") as source, self._writing(name) as file:
            shutil.copyfileobj(source, file, _CHUNK)

    def create(self, name: str, content: bytes) -> None:
        """Write a new file in one step; raises FileExistsError if it exists."""
        with self._writing(name, is_new=True) as file:
            file.write(content)

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        with self._writing(name) as file:
            file.write(content)

    def remove(self, name: str) -> None:
        """Remove a file, which need not exist."""
        self._path(name).unlink(missing_ok=True)

    def alone(self) -> AbstractContextManager[None]:
        """A context that only one process can be in at a time."""
        return lock(self._folder / "index.json", lambda: None)

    @contextmanager
    def _writing(self, name: str, *, is_new: bool = False) -> Iterator[IO[bytes]]:
        """A file that gets its name only when it is complete."""
        target = self._path(name)
        with lock(self._folder / "index", lambda: None):
            # While the lock is held, no other process writes, so these files are left from dead processes.
            # They are not in the folder of a version, because each file there belongs to the version.
            for left_over in self._folder.glob(f"{_UNFINISHED}*"):
                left_over.unlink()
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
            # So that the rename survives a power cut.
            fsync(target.parent)

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Sizes in bytes of the files below a folder, without hidden files."""
        paths = (path for path in sorted(self._path(folder).rglob("*")) if not path.name.startswith("."))
        return {
            path.relative_to(self._folder).as_posix(): path.stat().st_size for path in paths if path.is_file()
        }

    def _path(self, name: str) -> Path:
        path = self._folder / name
        try:
            # A symbolic link in the folder could lead to any file of this machine.
            is_inside = not Path(name).is_absolute() and path.resolve() == self._folder.resolve() / name
        except (OSError, RuntimeError):  # Symbolic links in a circle.
            is_inside = False
        if not is_inside:
            raise VersionConflictError(
                f"{path} lies outside the folder, or a symbolic link leads to it; put the file itself there"
            )
        return path


class ObjectStorePlace:
    """A folder in an object store: s3://, gs://, or another scheme for which fsspec has a package.

    Credentials, region and endpoint come from the store's own variables, such as `AWS_ACCESS_KEY_ID`.

    Args:
      url: URL of the folder.

    Raises:
      InvalidInputError: fsspec does not know the scheme.
      NotAvailableError: the package for the scheme is not installed.
      UnreachableError: the store cannot be reached.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self._url = url.rstrip("/")
        if (extra := _EXTRAS.get(url.partition("://")[0])) is not None:
            require_extras(extra, purpose=self._url)
        try:
            # Listings are not cached, so that files of other processes are seen.
            self._store, self._root = url_to_fs(self._url, use_listings_cache=False)
        except ImportError as error:
            raise NotAvailableError(f"{self._url}: {error}") from error
        except ValueError as error:
            raise InvalidInputError(
                str(error), where=self._url, fix="use a folder, s3:// or gs://"
            ) from error
        except Exception as error:  # Some stores connect at once and raise their own errors.
            raise UnreachableError(f"{self._url}: {type(error).__name__}: {error}") from error

    @property
    def url(self) -> str:
        """Its URL."""
        return self._url

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """Read a file, as `Place.open` says."""
        with self._explained(name):
            # Read in pieces, each with a range request, without a cache.
            stream = self._store.open(
                f"{self._root}/{name}", "rb", block_size=_STORE_CHUNK, cache_type="readahead"
            )
            stream.seek(start)
        try:
            yield Opened(start, self._chunks(name, stream))
        finally:
            stream.close()

    def put(self, name: str, path: Path) -> None:
        """Copy a file of this machine to the place, completely or not at all."""
        with self._explained(name, _NO_BUCKET):
            self._store.put_file(str(path), f"{self._root}/{name}")

    def create(self, name: str, content: bytes) -> None:
        """Write a new file, in one step in S3 and Google Cloud Storage, in two in simpler stores."""
        with self._explained(name, _NO_BUCKET):
            self._store.pipe_file(f"{self._root}/{name}", content, mode="create")

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        with self._explained(name, _NO_BUCKET):
            self._store.pipe_file(f"{self._root}/{name}", content)

    def remove(self, name: str) -> None:
        """Remove a file, which need not exist."""
        with suppress(MissingError), self._explained(name):
            self._store.rm_file(f"{self._root}/{name}")

    def alone(self) -> AbstractContextManager[None]:
        """A context that does nothing, because a store has no locks."""
        return nullcontext()

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Sizes in bytes of the files below a folder."""
        with self._explained(folder):
            self._store.invalidate_cache()
            found = self._store.find(f"{self._root}/{folder}", detail=True)
        return {path.removeprefix(f"{self._root}/"): int(found[path]["size"]) for path in sorted(found)}

    def _chunks(self, name: str, stream: Any) -> Iterator[bytes]:
        # Only around reading from the store: an error of the reader's own disk is not an error of the store.
        with self._explained(name):
            while chunk := stream.read(_STORE_CHUNK):
                yield chunk

    @contextmanager
    def _explained(self, name: str, missing: str = "is not there") -> Iterator[Any]:
        where = f"{self._url}/{name}"
        try:
            yield
        except (FileExistsError, NotAvailableError, InvalidInputError):
            raise
        except FileNotFoundError as error:
            raise MissingError(f"{where} {missing}") from error
        except PermissionError as error:
            raise NotAvailableError(
                f"{where} may not be read or written ({error}); check the credentials of the store"
            ) from error
        except Exception as error:  # Every store raises its own errors.
            raise UnreachableError(f"{where}: {type(error).__name__}: {error}") from error


def _chunks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        while chunk := stream.read(_CHUNK):
            yield chunk
    except OSError as error:
        raise UnreachableError(f"{path} cannot be read: {error}") from error
