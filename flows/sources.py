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

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError
from hyperbo.files import write_atomically
from pd1_builder.archives import unpack
from pipelines.raw_files import sha256_of

# What a file system may know of a file that changes when its content does, the surest first.
_STAMPS = ("ETag", "etag", "md5Hash", "sha256", "LastModified", "Last-Modified", "mtime", "updated")
# Names of files that are still being written, or of no concern to anyone.
_UNFINISHED = (".tmp", ".part", ".crdownload", "~")
# Errors of a file system that stay until somebody does something about them.
_LASTING = (ImportError, PermissionError, ValueError)


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file of a source, as its listing shows it.

    Attributes:
      name: of the file.
      url: where it is.
      size: bytes; -1 where that is not known.
      stamp: what else the file system knows that changes with the content; empty for nothing.
    """

    name: str
    url: str
    size: int
    stamp: str

    @property
    def is_here(self) -> bool:
        """Whether it is a file of this machine."""
        return self.url.startswith("file:")


# Makes a file of a source one of this machine, in a folder where it is not; `fetched` is the plain one.
Fetch = Callable[[SourceFile, Path], Path]


def listing(url: str) -> tuple[SourceFile, ...]:
    """List the files of a folder, or a single file, by an fsspec URL or a path; none hidden or unfinished.

    Raises:
      UnreachableError: it cannot be reached, or is not there on a web server, which looks the same.
      NotAvailableError: the folder is not there, or there is no means to read it.
    """
    with _explained(url):
        system, path = url_to_fs(url)
        system.invalidate_cache()  # Some remember what they listed, in every process that asks.
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
    return tuple(sorted(file for file in files if _is_finished(file.name)))


def _file(system: Any, place: str, facts: dict[str, Any]) -> SourceFile:
    if facts.get("size") is None:  # A web server tells of a file what its page of them does not.
        facts = system.info(place)
    size, stamp = facts.get("size"), next((facts[name] for name in _STAMPS if facts.get(name)), "")
    return SourceFile(
        PurePosixPath(place).name,
        system.unstrip_protocol(place),
        -1 if size is None else int(size),
        str(stamp),
    )


def _is_finished(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED)


def fetched(file: SourceFile, folder: Path) -> Path:
    """A file of a source on this machine: itself where it is here, else a copy in a folder.

    Raises:
      UnreachableError: it cannot be reached.
      NotAvailableError: there is no means to read it.
      InvalidInputError: it changed since it was listed, as one does that is still being written.
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
    """The folder of an archive's members, under a folder of those fetched before; downloaded where it is new.

    Args:
      file: the archive.
      folder: of those fetched before.
      fetch: reads it, as `fetched` does.

    Raises:
      NotAvailableError: it cannot be read.
      InvalidInputError: it changed while it was read, or cannot be unpacked safely.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as staging:
        local = fetch(file, Path(staging))
        return unpack(local, folder / f"{sha256_of(local)[:16]}.unpacked")


class SourceState:
    """What a source looked like when all of it was in a published version: a file beside the runs.

    Losing it costs reading all files of the source once more; what they hold is compared with the versions.

    Args:
      runs: folder of runs.
      dataset: `<name>/<config>`.
      terms: what else decides what becomes of a file: limits, space file, code. After a change, all files are
        looked at again.
    """

    def __init__(self, runs: Path, dataset: str, terms: str) -> None:
        self._path = runs / "sources" / f"{dataset.replace('/', '-')}.json"
        self._terms = terms

    def holds(self, files: tuple[SourceFile, ...], version: str) -> bool:
        """Whether this is what the source looked like when the version was published."""
        try:
            return self._path.read_text(encoding="utf-8") == self._text(files, version)
        except (OSError, ValueError):
            return False

    def record(self, files: tuple[SourceFile, ...], version: str) -> None:
        """Remember what the source looks like: all of it is in the version, or was refused."""
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
    except Exception as error:  # Every file system has errors of its own.
        kind = NotAvailableError if isinstance(error, _LASTING) else UnreachableError
        raise kind(f"{url} cannot be read: {type(error).__name__}: {error}") from error
