"""Lines for people: one per step, and a progress line for every long one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

# Called with units done and in all.
ReportProgress = Callable[[int, int], None]

_SECONDS_BETWEEN_LINES = 10.0


def say(line: str) -> None:
    """Print a line at once, as it is."""
    print(line, flush=True)


def progress_line(label: str, unit: str) -> AbstractContextManager[ReportProgress]:
    """Show how far a step is, how fast, and the time left: a bar on a terminal, elsewhere plain lines.

    Plain lines come ten seconds apart. The rate is that of this run alone: units that were finished before
    count as done from the start.

    Args:
      label: the step.
      unit: what is counted.

    Returns:
      A context that gives a callback for units done and in all.
    """
    import rich
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn())
    return _progress(label, unit, rich.get_console(), columns, say)


def byte_progress(label: str) -> AbstractContextManager[ReportProgress]:
    """Show how many bytes have arrived, on standard error: a bar on a terminal, elsewhere plain lines.

    Args:
      label: what is transferred.

    Returns:
      A context that gives a callback for bytes that have arrived and in all; any thread may call it.
    """
    from rich.console import Console
    from rich.progress import DownloadColumn, TransferSpeedColumn

    show = partial(print, file=sys.stderr, flush=True)
    return _progress(label, "bytes", Console(stderr=True), (DownloadColumn(), TransferSpeedColumn()), show)


@contextmanager
def _progress(
    label: str, unit: str, console: Console, counts: tuple[ProgressColumn, ...], show: Callable[[str], object]
) -> Iterator[ReportProgress]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if not console.is_terminal:
        yield _plain_lines(label, unit, show)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), *counts, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _plain_lines(label: str, unit: str, show: Callable[[str], object]) -> ReportProgress:
    started = time.monotonic()
    first: int | None = None  # a step that goes on after a break does not begin at 0
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
