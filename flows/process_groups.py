"""Commands in process groups of their own, none of which outlives the process that started it.

Run as a script this module is the watchman: it hears of the groups on its standard input, and ends those
that are left where the input ends, as it does when the process that wrote to it is killed. It needs nothing
but the standard library.
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


def end_groups(groups: Iterable[int], leaders: Sequence[subprocess.Popen[bytes]] = ()) -> None:
    """Ask process groups to terminate, and kill what is there some seconds later.

    Args:
      groups: their numbers.
      leaders: those that are children of this process, which stay in their groups until they are waited for.
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
            # One that may not be signalled, such as of sudo, is left behind.
            with contextlib.suppress(subprocess.TimeoutExpired):
                leader.wait(_SECONDS_TO_END)


def _signalled(group: int, number: int) -> bool:
    """Whether there was such a group to be signalled."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # What is left of it belongs to another user, or, on macOS, has ended.
        return False
    return True


class ProcessGroups:
    """The commands that this process has started and that have not ended; a context that ends what is left.

    Ctrl-C in a terminal does not reach them: whoever started them ends them. Where this process is killed, a
    second small one, the watchman, does so.
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
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: IO[bytes],
        errors: IO[bytes],
    ) -> subprocess.Popen[bytes]:
        """Start a command in a group of its own, with nothing on its standard input.

        Raises:
          OSError: it cannot be started.
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
        """The exit code of a command; None while it runs. What it left running is let be."""
        code = process.poll()
        if code is not None:
            self._forget(process)
        return code

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """End commands with all that they started."""
        end_groups([each.pid for each in processes], processes)
        for each in processes:
            self._forget(each)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        if self._running.pop(process.pid, None) is not None:
            self._tell(f"-{process.pid}")

    def _tell(self, line: str) -> None:
        assert self._watchman.stdin is not None
        # Without its watchman, which somebody may have killed, the work goes on.
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
    end_groups(groups)


if __name__ == "__main__":
    _watch(sys.stdin)
