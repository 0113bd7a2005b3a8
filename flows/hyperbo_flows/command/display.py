"""How `hyperbo tune` and `hyperbo online` show the trials of a run: a table on a terminal, else lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hyperbo.bayesopt.journal import OnlineTrial
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.data.warping import Direction
from hyperbo_flows.process.progress import say

if TYPE_CHECKING:
    from hyperbo.tuning.trial import TuningTrial
    from hyperbo_flows.experiments.online import ShowTrials

_ROWS_SHOWN = 12
_SECONDS_BETWEEN_TABLES = 0.25


class ShownTrial(NamedTuple):
    """A trial of an online run, with the fields of a `TuningTrial`, which needs Optuna."""

    number: int
    hyperparameters: Mapping[str, Any]
    status: str
    objective: float | None


@dataclass(frozen=True)
class View:
    """The present state of a run.

    Attributes:
      trials: in the order of their numbers.
      total: number of trials that the run shall have.
      direction: of the objective.
      columns: names of the parameters that are not held fixed.
      seconds: durations, by number of the trial, where they are known.
      reasons: why trials have no objective, by number of the trial.
    """

    trials: Sequence[TuningTrial | ShownTrial]
    total: int
    direction: Direction
    columns: Sequence[str]
    seconds: Mapping[int, float]
    reasons: Mapping[int, str]


# Shows a run. The number is that of a trial that has just ended; None where only time has passed.
Show = Callable[[View, int | None], None]


@contextmanager
def shown() -> Iterator[Show]:
    """Show a run until the context ends: on a terminal a table and lines for failed trials, else lines."""
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


@contextmanager
def shown_online(runs: int, trials: int) -> Iterator[ShowTrials | None]:
    """Show the trials of an online comparison that has one run, then its best trial.

    Args:
      runs: number of runs. For several runs this gives None: a line of progress says more.
      trials: number of trials that the run shall have.
    """
    if runs > 1:
        yield None
        return
    names = PD1_SEARCH_SPACE.names
    view = View((), trials, "minimize", names, {}, {})
    with shown() as show:

        def show_trials(so_far: Sequence[OnlineTrial], new: Sequence[OnlineTrial]) -> None:
            nonlocal view
            view = replace(view, trials=[_shown_trial(trial) for trial in so_far])
            for ended in [trial.iteration for trial in new] or [None]:
                show(view, ended)

        yield show_trials
    best = best_trial(view)
    if best is not None:
        say(f"best objective {best.objective:.5g} in trial {best.number}: {described(best, names)}")


def _shown_trial(trial: OnlineTrial) -> ShownTrial:
    hyperparameters = dict(zip(PD1_SEARCH_SPACE.names, trial.point, strict=True))
    status = "infeasible" if trial.objective is None else "done"
    return ShownTrial(trial.iteration, hyperparameters, status, trial.objective)


def table(view: View) -> Any:
    """The last trials of a run. The best trial is in bold; it comes first where it is older."""
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
            *(
                _short(trial.hyperparameters[name]) if name in trial.hyperparameters else ""
                for name in view.columns
            ),
        ]
        made.add_row(*map(Text, row), style="bold" if trial is best else None)
    return made


def best_trial(view: View) -> TuningTrial | ShownTrial | None:
    """The trial with the best objective; None while there is none."""
    sign = 1.0 if view.direction == "minimize" else -1.0
    done = [trial for trial in view.trials if trial.objective is not None]
    return min(done, key=lambda trial: sign * (trial.objective or 0.0), default=None)


def described(trial: TuningTrial | ShownTrial, names: Sequence[str]) -> str:
    """Some hyperparameters of a trial as text, without those that are inactive.

    >>> described(ShownTrial(0, {"rate": 0.0123456, "layers": 3, "power": 1.0}, "running", None), ["rate"])
    'rate=0.01235'
    """
    shown = (name for name in names if name in trial.hyperparameters)
    return " ".join(f"{name}={_short(trial.hyperparameters[name])}" for name in shown)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _say_ended(view: View, ended: int | None) -> None:
    if ended is None:
        return
    (trial,) = (each for each in view.trials if each.number == ended)
    result = trial.status if trial.objective is None else f"{trial.objective:.5g}"
    reason = f", {view.reasons[ended]}" if ended in view.reasons else ""
    seconds = f" in {view.seconds[ended]:.1f} s" if ended in view.seconds else ""
    say(f"trial {ended}: {result}{reason}{seconds}; {_standing(view)}; {described(trial, view.columns)}")


def _standing(view: View) -> str:
    counts = {
        status: sum(trial.status == status for trial in view.trials)
        for status in ("done", "infeasible", "running")
    }
    best = best_trial(view)
    found = "none feasible" if best is None else f"best {best.objective:.5g} in trial {best.number}"
    ended = counts["done"] + counts["infeasible"]
    return f"{ended} of {view.total}, {found}, {counts['infeasible']} infeasible, {counts['running']} running"
