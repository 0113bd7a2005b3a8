"""Where a user's files are kept, and writing a file whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def user_folder() -> Path:
    """Where the project keeps files of a user: `hyperbo` in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "hyperbo"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that its name holds the old content or the new; a missing folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    # The rename itself must survive a power cut.
    fsync(path.parent)


def fsync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
