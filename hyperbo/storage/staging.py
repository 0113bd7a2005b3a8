"""Making a folder appear all at once: a lock, a staging folder, fsync, one rename."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperbo.errors import VersionConflictError
from hyperbo.storage.atomic import fsync


@contextmanager
def lock(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the right to make or change one file or folder, which need not exist; a second process waits.

    The kernel frees the lock when its process ends, however it ends. `on_wait` is called once if another
    process holds the lock.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # The lock file stays: removing it would let two processes lock two files of one name.
    with (target.parent / f".{target.name}.lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


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
