"""Making a version appear all at once: a lock per version, a staging folder, fsync, one rename."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperbo.errors import VersionConflictError

# What the system says where a disk, a quota or a limit of file sizes is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def lock_version(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the right to build one version; a second builder waits.

    The kernel frees the lock when its process ends, however it ends.

    Args:
      target: folder of the version.
      on_wait: called once if another process holds the lock.
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
    """A staging folder beside the version, removed at the end. Call only under `lock_version`.

    Folders left by builds of this version that were killed are removed first: whoever holds the lock knows
    that no other build is alive.
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
    """Make a complete folder visible as a version, durably.

    Raises:
      VersionConflictError: the version exists already.
    """
    for path in sorted(folder.rglob("*")):
        _fsync(path)
    _fsync(folder)
    if target.exists():
        raise VersionConflictError(f"{target} exists already; a published version never changes")
    folder.rename(target)
    _fsync(target.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
