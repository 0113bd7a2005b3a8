"""Lines for people: one per step, and a progress line for every long one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

_SECONDS_BETWEEN_LINES = 10.0


def say(line: str) -> None:
    """Print a line as it is."""
    print(line, flush=True)


@contextmanager
def progress_line(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a step is, how fast, and the time left: a bar on a terminal, elsewhere plain lines.

    Plain lines come ten seconds apart. The rate is that of this run: what was finished before counts as done
    from the start.

    Args:
      label: the step.
      unit: what is counted.

    Yields:
      A callback for units done and in all.
    """
    import rich
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = rich.get_console()
    if not console.is_terminal:
        yield _plain_lines(label, unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


@contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many bytes are here, on standard error: a bar on a terminal, elsewhere plain lines.

    Args:
      label: what is brought here.

    Yields:
      A callback for bytes that are here and in all; any thread may call it.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines(label, "bytes", partial(print, file=sys.stderr, flush=True))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _plain_lines(label: str, unit: str, show: Callable[[str], object] = say) -> Callable[[int, int], None]:
    started = time.monotonic()
    first: int | None = None  # a step that was broken off does not begin at 0
    last = started

    def report(done: int, total: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None:
            first = done
        elif now - last < _SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = (done - first) / (now - started) if now > started else 0.0
        speed = f", {rate:.3g} a second, {(total - done) / rate:.0f} s left" if rate > 0 else ""
        show(f"{label}: {done} of {total} {unit}, {now - started:.0f} s{speed}")

    return report
