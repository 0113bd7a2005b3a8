"""Whether a test can have a file system of its own: for tests only."""

from __future__ import annotations

import subprocess


def may_mount() -> bool:
    """Whether this system lets a process have a file system that only it sees."""
    command = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs tmpfs "$0"', "/tmp"]
    try:
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
    except FileNotFoundError:
        return False
