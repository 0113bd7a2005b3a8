"""Tuning one task with a published prior: one run of online Bayesian optimization, shown as it goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from flows.online import PREPARATION, origin_of, write_results
from flows.progress import say
from hyperbo.code_version import code_version
from hyperbo.errors import InvalidInputError, NumericalError, VersionConflictError
from hyperbo.online import ONLINE_METHODS, Journal, OnlineRun, OnlineTrial, Retrained, RunName, tune
from hyperbo.online.records import online_records
from hyperbo.pretrain import Job
from hyperbo.prior import Prior, load_prior
from hyperbo.search_space import PD1_SEARCH_SPACE
from hyperbo.subsets import only_tasks
from pd1_builder.load import load
from pipelines.collect.objective import LiveObjective
from pipelines.collect.preset import load_preset

_PREFIX = "pd1-"
_ROWS_SHOWN = 12


@dataclass(frozen=True)
class Tuning:
    """One run.

    Attributes:
      objective: `pd1-<preset>:<study>`, a task of a preset, trained for real.
      prior: folder of a prior that was pre-trained on the preparation `online`.
      trials: of the run, those counted that it has already.
      seed: of its random numbers.
      out: folder of the run.
      data_dir: folder of dataset versions; None: the default one.
    """

    objective: str
    prior: Path
    trials: int
    seed: int
    out: Path
    data_dir: Path | None = None


def tune_task(tuning: Tuning) -> OnlineTrial | None:
    """Tune a task, or go on where a run was broken off; write the records and the raw rows.

    Returns:
      The best trial; None where all were infeasible.

    Raises:
      HyperBOError: the objective or the prior is not there or does not fit, or the folder holds another run.
      NumericalError: the method failed; the trials before are kept.
    """
    prior = load_prior(tuning.prior)
    method = _method(prior, tuning.prior)
    preset_name, study = _named(tuning.objective)
    preset = load_preset(preset_name)
    description = prior.description
    data = load(description.dataset, PREPARATION, data_dir=tuning.data_dir)
    if data.provenance.manifest_hash != description.manifest_hash:
        raise VersionConflictError(
            f"{tuning.prior}: the prior was trained on another {description.dataset} than is here: content "
            f"{description.manifest_hash}, not {data.provenance.manifest_hash}; take the version it names"
        )
    identity = {
        "objective": tuning.objective,
        "preset": preset.sha256,
        "prior": asdict(description) | {"search_space": description.search_space.to_json()},
        "method": asdict(method),
        "seed": tuning.seed,
        "code_version": code_version("hyperbo", "pipelines"),
    }
    journal = Journal(tuning.out, identity)
    objective = LiveObjective(preset, study, 1, origin_of(identity))
    job = Job(only_tasks(data, description.training_tasks), description.seed)
    (fitted,) = method.with_priors([job], [prior.gp])
    run = OnlineRun(RunName(description.method, study, tuning.seed), method, fitted)
    with _shown(tuning.trials) as show:
        show(journal.trials, journal.trials)
        failures = tune(
            [run], {study: objective}, journal, tuning.trials, lambda new: show(journal.trials, new)
        )
    write_results(tuning.out, online_records(journal.trials, {study: objective.warping}), journal)
    if failures:
        raise NumericalError(f"{'/'.join(map(str, run.name))}: {failures[run.name]}")
    return best_trial(journal.trials)


def best_trial(trials: Sequence[OnlineTrial]) -> OnlineTrial | None:
    """The trial with the smallest error; None where all were infeasible."""
    errors = [math.inf if trial.objective is None else trial.objective for trial in trials]
    best = min(errors, default=math.inf)
    return None if math.isinf(best) else trials[errors.index(best)]


def described(trial: OnlineTrial) -> str:
    """The hyperparameters of a trial, for people.

    >>> described(OnlineTrial(RunName("Rand", "t", 0), 1, (0.01, 1.0, 0.9, 0.5), 0.25, {}))
    'learning_rate=0.01 power=1 momentum=0.9 decay_steps_factor=0.5'
    """
    return " ".join(
        f"{name}={value:.4g}" for name, value in zip(PD1_SEARCH_SPACE.names, trial.point, strict=True)
    )


def _named(objective: str) -> tuple[str, str]:
    preset, colon, study = objective.partition(":")
    if not (preset.startswith(_PREFIX) and colon and study):
        raise InvalidInputError(
            f"objective {objective!r}", fix="write pd1-<preset>:<task>, such as pd1-mini:digits_simple_cnn_20"
        )
    return preset.removeprefix(_PREFIX), study


def _method(prior: Prior, folder: Path) -> Retrained:
    """The method that a prior belongs to, with the prior's own settings."""
    description = prior.description
    known = ONLINE_METHODS.get(description.method)
    if not isinstance(known, Retrained) or description.preparation != PREPARATION:
        raise InvalidInputError(
            f"a prior of {description.method} on the preparation {description.preparation!r} does not fit "
            "values that are mapped to [-2, 2]",
            where=str(folder),
            fix="use one that `hyperbo online` has left in its folder of priors",
        )
    if description.search_space != PD1_SEARCH_SPACE:
        raise InvalidInputError("the prior is over another search space than PD1's", where=str(folder))
    training: Any = type(known.method.training)(**description.training)
    return replace(
        known, method=replace(known.method, architecture=description.architecture, training=training)
    )


# Called with all trials so far, and with those of them that are new.
_Show = Callable[[Sequence[OnlineTrial], Sequence[OnlineTrial]], None]


@contextmanager
def _shown(trials: int) -> Iterator[_Show]:
    """Show trials as they come: a table on a terminal, elsewhere a line for each."""
    import rich
    from rich.live import Live

    def lines(so_far: Sequence[OnlineTrial], new: Sequence[OnlineTrial]) -> None:
        for trial in new:
            say(_line(so_far[: trial.iteration], trials))

    console = rich.get_console()
    if not console.is_terminal:
        yield lines
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda so_far, new: live.update(_table(so_far, trials), refresh=True)


def _line(so_far: Sequence[OnlineTrial], trials: int) -> str:
    trial = so_far[-1]
    value = "infeasible" if trial.objective is None else f"error {trial.objective:.4f}"
    return f"trial {trial.iteration} of {trials}: {value}; {_standing(so_far)}; {described(trial)}"


def _standing(so_far: Sequence[OnlineTrial]) -> str:
    best, infeasible = best_trial(so_far), sum(trial.objective is None for trial in so_far)
    found = f"best {best.objective:.4f} in trial {best.iteration}" if best else "none feasible"
    return f"{found}, {infeasible} infeasible"


def _table(so_far: Sequence[OnlineTrial], trials: int) -> Any:
    from rich.table import Table

    caption = _standing(so_far) if so_far else "none yet"
    table = Table("trial", "error", *PD1_SEARCH_SPACE.names, caption=f"{len(so_far)} of {trials}: {caption}")
    best = best_trial(so_far)
    for trial in so_far[-_ROWS_SHOWN:]:
        value = "infeasible" if trial.objective is None else f"{trial.objective:.4f}"
        numbers = [f"{number:.4g}" for number in trial.point]
        table.add_row(str(trial.iteration), value, *numbers, style="bold" if trial is best else None)
    return table
