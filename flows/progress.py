"""Lines for people: one per step, and a progress line for every long one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 10.0


def say(line: str) -> None:
    """Print a line as it is."""
    print(line, flush=True)


@contextmanager
def progress_line(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a step is: a bar on a terminal, elsewhere plain lines, ten seconds apart.

    Args:
      label: the step.
      unit: what is counted.

    Yields:
      A callback for units done and in all.
    """
    import rich
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

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
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _plain_lines(label: str, unit: str) -> Callable[[int, int], None]:
    started = time.monotonic()
    last: float | None = None  # a step that was broken off does not begin at 0

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if last is None or now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            say(f"{label}: {done} of {total} {unit}, {now - started:.0f} s")

    return report
