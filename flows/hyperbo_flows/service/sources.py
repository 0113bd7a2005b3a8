"""Sources of trials: what lies in an inbox or behind the address of an archive, and whether it is new."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from hyperbo_pipelines.curate.raw_files import sha256_of

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError
from hyperbo.storage.atomic import write_atomically
from pd1_builder.release.archives import unpack

# Facts of a file that change when its content does, the most reliable first. File systems differ in them.
_STAMPS = ("ETag", "etag", "md5Hash", "sha256", "LastModified", "Last-Modified", "mtime", "updated")
# Endings of names of temporary files, and of files that are still being written.
_UNFINISHED = (".tmp", ".part", ".crdownload", "~")
# Errors of a file system that do not pass by themselves.
_LASTING = (ImportError, PermissionError, ValueError)


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file of a source, as its listing shows it.

    Attributes:
      name: name of the file.
      url: address of the file.
      size: size in bytes; -1 where that is not known.
      stamp: a further fact that changes with the content; empty for none.
    """

    name: str
    url: str
    size: int
    stamp: str

    @property
    def is_here(self) -> bool:
        """Whether it is a file of this machine."""
        return self.url.startswith("file:")


# Copies a file of a source to a folder of this machine, unless it is on this machine, as `fetched` does.
Fetch = Callable[[SourceFile, Path], Path]


def listing(url: str) -> tuple[SourceFile, ...]:
    """List the files of a folder, or a single file, without hidden and unfinished ones.

    Args:
      url: an fsspec URL, or a path.

    Raises:
      UnreachableError: it cannot be reached; or it is not there on a web server, which looks the same.
      NotAvailableError: the folder is not there, or cannot be read.
    """
    with _explained(url):
        system, path = url_to_fs(url)
        system.invalidate_cache()  # Some file systems keep their listings.
        if not system.exists(path):
            if _protocols(system) & {"http", "https"}:
                raise UnreachableError(f"{url} is not there, or its server does not answer")
            if _protocols(system) & {"file", "local"}:
                raise NotAvailableError(f"{url} is not there; make the folder, or correct the address")
            return ()  # An object store has no empty folders.
        found = (
            system.find(path, maxdepth=1, detail=True) if system.isdir(path) else {path: system.info(path)}
        )
    files = (_file(system, place, facts) for place, facts in found.items())
    return tuple(
        sorted(file for file in files if file.name[:1] != "." and not file.name.endswith(_UNFINISHED))
    )


def _file(system: Any, place: str, facts: dict[str, Any]) -> SourceFile:
    if facts.get("size") is None:  # The page of a web server lacks sizes.
        facts = system.info(place)
    size, stamp = facts.get("size"), next((facts[name] for name in _STAMPS if facts.get(name)), "")
    return SourceFile(
        PurePosixPath(place).name,
        system.unstrip_protocol(place),
        -1 if size is None else int(size),
        str(stamp),
    )


def fetched(file: SourceFile, folder: Path) -> Path:
    """The path of a file of a source: the file itself where it is on this machine, else a copy in a folder.

    Raises:
      UnreachableError: the file cannot be reached.
      NotAvailableError: the file cannot be read.
      InvalidInputError: the file changed since it was listed; it may still be being written.
    """
    with _explained(file.url):
        system, path = url_to_fs(file.url)
        if "file" in _protocols(system):
            local = Path(path)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            local = folder / file.name
            system.get_file(path, str(local))
        system.invalidate_cache()
        changed = _file(system, path, system.info(path)) != file
    if changed or file.size not in (-1, local.stat().st_size):
        raise InvalidInputError(
            "the file changed while it was read", where=file.url, fix="wait until it is complete"
        )
    return local


def fetched_archive(file: SourceFile, folder: Path, fetch: Fetch = fetched) -> Path:
    """The folder of an archive's members; the archive is fetched and unpacked where its content is new.

    Args:
      file: the archive.
      folder: folder of all unpacked archives.
      fetch: copies the archive to this machine.

    Raises:
      UnreachableError: the archive cannot be reached.
      NotAvailableError: the archive cannot be read.
      InvalidInputError: the archive changed while it was read, or cannot be unpacked safely.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as staging:
        local = fetch(file, Path(staging))
        return unpack(local, folder / f"{sha256_of(local)[:16]}.unpacked")


class SourceState:
    """The listing of a source whose files were all dealt with: a file beside the runs.

    If the file is lost, all files of the source are read once more and compared with the version.

    Args:
      runs: folder of runs.
      dataset: `<name>/<config>-<source>`.
      terms: what else decides whether a file is accepted: limits, space file, code. After a change, all files
        are looked at again.
    """

    def __init__(self, runs: Path, dataset: str, terms: str) -> None:
        self._path = runs / "sources" / f"{dataset.replace('/', '-')}.json"
        self._terms = terms

    def holds(self, files: tuple[SourceFile, ...], version: str) -> bool:
        """Whether the source has the listing that was recorded for the version."""
        try:
            return self._path.read_text(encoding="utf-8") == self._text(files, version)
        except (OSError, ValueError):
            return False

    def record(self, files: tuple[SourceFile, ...], version: str) -> None:
        """Record the listing: all of its files are in the version, or were refused."""
        write_atomically(self._path, self._text(files, version).encode())

    def _text(self, files: tuple[SourceFile, ...], version: str) -> str:
        rows = [[file.url, file.size, file.stamp] for file in files]
        return json.dumps({"version": version, "terms": self._terms, "files": rows}, indent=1) + "\n"


def _protocols(system: Any) -> set[str]:
    return {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except (InvalidInputError, NotAvailableError):
        raise
    except Exception as error:  # File systems differ in their errors.
        kind = NotAvailableError if isinstance(error, _LASTING) else UnreachableError
        raise kind(f"{url} cannot be read: {type(error).__name__}: {error}") from error
