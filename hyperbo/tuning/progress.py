"""How far a run of `Tuner.optimize` is, on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Without a terminal, lines come this far apart: the log of a long run stays short.
_SECONDS_BETWEEN_LINES = 10.0

# Called with the number of trials that have ended, and with what else there is to say.
ShowProgress = Callable[[int, str], None]


@contextmanager
def shown_trials(total: int) -> Iterator[ShowProgress]:
    """Show how many trials have ended, until the context ends; then a line stays that says what came of it.

    What the tuned function prints, and what is logged, appears above the bar.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    latest = ""
    if console.is_terminal:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials, {task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            bar = bars.add_task("", total=total)

            def show(ended: int, said: str) -> None:
                nonlocal latest
                latest = f"{ended} of {max(total, ended)} trials, {said}"
                bars.update(bar, completed=ended, description=said)

            yield show
    else:
        last = time.monotonic()

        def show_line(ended: int, said: str) -> None:
            nonlocal latest, last
            latest = f"{ended} of {max(total, ended)} trials, {said}"
            if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
                say(latest)
                last = time.monotonic()

        yield show_line
    say(latest)


def say(line: str) -> None:
    """Print a line on standard error at once."""
    print(line, file=sys.stderr, flush=True)
