"""What `hyperbo tune` shows of the trials of a command: a live table on a terminal, elsewhere lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flows.progress import say
from hyperbo.tuner import TuningTrial
from hyperbo.warping import Direction

_ROWS_SHOWN = 12
_SECONDS_BETWEEN_TABLES = 0.25


@dataclass(frozen=True)
class View:
    """A run as it stands.

    Attributes:
      trials: those there are, in the order of their numbers.
      total: number of trials that are wanted.
      direction: of the objective.
      columns: the parameters that are not held.
      seconds: of trials whose time is known, by number.
      reasons: why trials have no objective, by number.
    """

    trials: Sequence[TuningTrial]
    total: int
    direction: Direction
    columns: Sequence[str]
    seconds: Mapping[int, float]
    reasons: Mapping[int, str]


# Shows a run; told which trial has ended, or that only time has passed.
Show = Callable[[View, int | None], None]


@contextmanager
def shown() -> Iterator[Show]:
    """Show a run until the context ends: on a terminal as a table, and lines for what went wrong."""
    import rich
    from rich.live import Live

    console = rich.get_console()
    if not console.is_terminal:
        yield _say_ended
        return
    with Live(console=console, auto_refresh=False) as live:
        last = 0.0

        def show(view: View, ended: int | None) -> None:
            nonlocal last
            if ended is not None and ended in view.reasons:
                _say_ended(view, ended)
            if ended is not None or time.monotonic() - last >= _SECONDS_BETWEEN_TABLES:
                live.update(table(view), refresh=True)
                last = time.monotonic()

        yield show


def table(view: View) -> Any:
    """The last trials of a run, and the best one, in bold, above them where it is older."""
    from rich.table import Table
    from rich.text import Text

    made = Table("trial", "state", "objective", "seconds", caption=_standing(view))
    for name in view.columns:
        made.add_column(Text(name))
    best = best_trial(view)
    last = view.trials[-_ROWS_SHOWN:]
    for trial in last if best is None or best in last else [best, *last[1:]]:
        seconds = view.seconds.get(trial.number)
        row = [
            str(trial.number),
            trial.status,
            "" if trial.objective is None else f"{trial.objective:.5g}",
            "" if seconds is None else f"{seconds:.1f}",
            *(_short(trial.hyperparameters[name]) for name in view.columns),
        ]
        made.add_row(*map(Text, row), style="bold" if trial is best else None)
    return made


def best_trial(view: View) -> TuningTrial | None:
    """The trial with the best objective; None while there is none."""
    sign = 1.0 if view.direction == "minimize" else -1.0
    done = [trial for trial in view.trials if trial.objective is not None]
    return min(done, key=lambda trial: sign * (trial.objective or 0.0), default=None)


def described(hyperparameters: Mapping[str, Any], names: Sequence[str]) -> str:
    """Hyperparameters, for people.

    >>> described({"rate": 0.0123456, "layers": 3, "power": 1.0}, ["rate", "layers"])
    'rate=0.01235 layers=3'
    """
    return " ".join(f"{name}={_short(hyperparameters[name])}" for name in names)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _say_ended(view: View, ended: int | None) -> None:
    if ended is None:
        return
    (trial,) = (each for each in view.trials if each.number == ended)
    came = trial.status if trial.objective is None else f"{trial.objective:.5g}"
    reason = f", {view.reasons[ended]}" if ended in view.reasons else ""
    seconds = f" in {view.seconds[ended]:.1f} s" if ended in view.seconds else ""
    hyperparameters = described(trial.hyperparameters, view.columns)
    say(f"trial {ended}: {came}{reason}{seconds}; {_standing(view)}; {hyperparameters}")


def _standing(view: View) -> str:
    counts = {
        status: sum(trial.status == status for trial in view.trials)
        for status in ("done", "infeasible", "running")
    }
    best = best_trial(view)
    found = "none feasible" if best is None else f"best {best.objective:.5g} in trial {best.number}"
    ended = counts["done"] + counts["infeasible"]
    return f"{ended} of {view.total}, {found}, {counts['infeasible']} infeasible, {counts['running']} running"
