"""Making a folder appear all at once: a lock, a staging folder, fsync, one rename."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from hyperbo.errors import VersionConflictError
from hyperbo.storage.atomic import fsync

_ATTEMPTS = 100


@contextmanager
def lock(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the right to make or change one file or folder, which need not exist; a second process waits.

    The kernel frees the lock when its process ends, however it ends. `on_wait` is called once if another
    process holds the lock. The lock file stays beside what it locked. Where nothing was made, it is removed
    with the folders that were made for it.
    """
    path = target.parent / f".{target.name}.lock"
    has_waited = False
    made: list[Path] = []
    while True:
        made = made or [folder for folder in target.parents if not folder.exists()]
        with _opened(path) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not has_waited:
                    on_wait()
                has_waited = True
                fcntl.flock(stream, fcntl.LOCK_EX)
            if not _is_there(path, stream):
                continue
            try:
                yield
            finally:
                if not target.exists():
                    _remove(path, made)
            return


def _opened(path: Path) -> TextIO:
    for _ in range(_ATTEMPTS):
        # The process that made the folder may remove it at the same moment, also while `mkdir` looks at it.
        with suppress(FileNotFoundError, FileExistsError):
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("w")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w")


def _is_there(path: Path, stream: TextIO) -> bool:
    """Whether a path still names the open file: else whoever held its lock has removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _remove(path: Path, folders: Sequence[Path]) -> None:
    """Remove a lock file under its lock, and those of the folders around it that are empty."""
    path.unlink(missing_ok=True)
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


@contextmanager
def stage(target: Path) -> Iterator[Path]:
    """A staging folder beside the folder to be made, removed at the end. Call only under its `lock`.

    Folders left by processes that were killed while they made the same are removed first: whoever holds the
    lock knows that no other is alive.
    """
    prefix = f".building-{target.name}-"
    for dead in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(dead)
    staging = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield staging
    finally:
        shutil.rmtree(staging)


def publish(folder: Path, target: Path) -> None:
    """Make a complete folder visible under its name, durably.

    Raises:
      VersionConflictError: there is one of that name already.
    """
    for path in sorted(folder.rglob("*")):
        fsync(path)
    fsync(folder)
    if target.exists():
        raise VersionConflictError(f"{target} exists already; what is published never changes")
    folder.rename(target)
    fsync(target.parent)
