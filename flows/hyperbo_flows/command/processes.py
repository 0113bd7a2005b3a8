"""Commands in process groups of their own; no group outlives the process that started it.

Run as a script, this module is the watchman. It reads the numbers of the groups from its standard input. When
the input ends, as it does when the writing process is killed, it ends the groups that are left. The watchman
needs the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

_SECONDS_TO_END = 3.0
_POLL = 0.05


def _end_groups(groups: Iterable[int], leaders: Sequence[subprocess.Popen[bytes]] = ()) -> None:
    """Ask process groups to terminate, and kill those that are still there some seconds later.

    The leaders are children of this process: they stay in their groups until this process waits for them.
    """
    left = {group for group in groups if _signalled(group, signal.SIGTERM)}
    deadline = time.monotonic() + _SECONDS_TO_END
    try:
        while left and time.monotonic() < deadline:
            time.sleep(_POLL)
            for leader in leaders:
                leader.poll()
            left = {group for group in left if _signalled(group, 0)}
    finally:
        # Also where a second Ctrl-C cuts the waiting short.
        for group in left:
            _signalled(group, signal.SIGKILL)
        for leader in leaders:
            # A process that this one may not signal, such as sudo, is left behind.
            with contextlib.suppress(subprocess.TimeoutExpired):
                leader.wait(_SECONDS_TO_END)


def _signalled(group: int, number: int) -> bool:
    """Send a signal to a group; whether the group exists and may be signalled."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # Where signals are not permitted, what is left belongs to another user, or, on macOS, has ended.
        return False
    return True


class ProcessGroups:
    """The running commands of this process, as a context that ends the commands that are left.

    Ctrl-C in a terminal does not reach the commands: the process that started them ends them. If that process
    is killed, a second small process, the watchman, ends them.
    """

    def __enter__(self) -> ProcessGroups:
        """Start the watchman."""
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._watchman = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all groups, then the watchman."""
        try:
            self.end(list(self._running.values()))
        finally:
            assert self._watchman.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._watchman.stdin.close()
            self._watchman.wait()

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a command in a group of its own, with an empty standard input.

        Raises:
          OSError: the command cannot be started.
        """
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        self._running[process.pid] = process
        self._tell(f"+{process.pid}")
        return process

    def ended(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit code of a command; None while it runs. Processes that it left running are not stopped."""
        code = process.poll()
        if code is not None:
            self._forget(process)
        return code

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """End commands and all processes that they started."""
        _end_groups([each.pid for each in processes], processes)
        for each in processes:
            self._forget(each)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        if self._running.pop(process.pid, None) is not None:
            self._tell(f"-{process.pid}")

    def _tell(self, line: str) -> None:
        assert self._watchman.stdin is not None
        # Somebody may have killed the watchman. The work continues without it.
        with contextlib.suppress(BrokenPipeError):
            self._watchman.stdin.write(f"{line}\n".encode())
            self._watchman.stdin.flush()


def _watch(lines: Iterable[str]) -> None:
    groups: set[int] = set()
    for line in lines:
        if line.startswith("+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    _end_groups(groups)


if __name__ == "__main__":
    _watch(sys.stdin)
