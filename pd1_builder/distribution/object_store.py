"""A folder in an object store as a place: s3://, gs://, and whatever else fsspec has a package for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError
from pd1_builder.distribution.places import MissingError, Opened

_CHUNK = 4 << 20
_NO_BUCKET = "cannot be written, for there is no such bucket; make it, or correct the address"


class ObjectStorePlace:
    """A folder in an object store.

    Credentials, region and endpoint are those of the store's own variables, such as `AWS_ACCESS_KEY_ID`.

    Args:
      url: of the folder.

    Raises:
      InvalidInputError: fsspec knows no such scheme.
      NotAvailableError: the package for it is not installed.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self._url = url.rstrip("/")
        try:
            # What another process writes must be seen: nothing is remembered of a listing.
            self._store, self._root = url_to_fs(self._url, use_listings_cache=False)
        except ImportError as error:
            raise NotAvailableError(f"{self._url}: {error}; for s3:// pip install 'hyperbo[s3]'") from error
        except ValueError as error:
            raise InvalidInputError(
                str(error), where=self._url, fix="use a folder, s3:// or gs://"
            ) from error
        except Exception as error:  # Some connect at once, with errors of their own.
            raise UnreachableError(f"{self._url}: {type(error).__name__}: {error}") from error

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    @contextmanager
    def open(self, name: str, start: int = 0) -> Iterator[Opened]:
        """See `places.Place`."""
        with self._explained(name):
            # Read in pieces, each by a range; none is kept.
            stream = self._store.open(f"{self._root}/{name}", "rb", block_size=_CHUNK, cache_type="readahead")
            stream.seek(start)
        try:
            yield Opened(start, self._chunks(name, stream))
        finally:
            stream.close()

    def put(self, name: str, path: Path) -> None:
        """See `places.WritablePlace`."""
        with self._explained(name, _NO_BUCKET):
            self._store.put_file(str(path), f"{self._root}/{name}")

    def create(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`; one step in S3 and Google's store, two in those that lack it."""
        with self._explained(name, _NO_BUCKET):
            self._store.pipe_file(f"{self._root}/{name}", content, mode="create")

    def replace(self, name: str, content: bytes) -> None:
        """See `places.WritablePlace`."""
        with self._explained(name, _NO_BUCKET):
            self._store.pipe_file(f"{self._root}/{name}", content)

    def remove(self, name: str) -> None:
        """See `places.WritablePlace`."""
        with suppress(MissingError), self._explained(name):
            self._store.rm_file(f"{self._root}/{name}")

    def alone(self) -> AbstractContextManager[None]:
        """See `places.WritablePlace`; a store has no locks."""
        return nullcontext()

    def sizes(self, folder: str) -> Mapping[str, int]:
        """See `places.WritablePlace`."""
        with self._explained(folder):
            self._store.invalidate_cache()
            found = self._store.find(f"{self._root}/{folder}", detail=True)
        return {path.removeprefix(f"{self._root}/"): int(found[path]["size"]) for path in sorted(found)}

    def _chunks(self, name: str, stream: Any) -> Iterator[bytes]:
        # Not around the reader's own block: an error of its disk is none of the store.
        with self._explained(name):
            while chunk := stream.read(_CHUNK):
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
                f"{where} may not be read or written ({error}); check the store's credentials"
            ) from error
        except Exception as error:  # Every store has errors of its own.
            raise UnreachableError(f"{where}: {type(error).__name__}: {error}") from error
