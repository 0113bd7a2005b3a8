"""Tuning a command of one's own: each trial runs it with other hyperparameters, and reads what it says."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass

from flows.command_run import CommandRun
from flows.command_template import CommandTemplate
from flows.command_tuning import CommandTuning
from flows.parameter_ranges import read_ranges
from flows.process_groups import ProcessGroups
from flows.progress import say
from flows.tune_display import shown
from hyperbo.errors import InvalidInputError
from hyperbo.integrations.database import database_errors
from hyperbo.integrations.given_space import space_of
from hyperbo.prior import Prior
from hyperbo.published import load_prior
from hyperbo.tuner import Tuner, TuningTrial
from hyperbo.warping import output_warping

_COMMAND = "hyperbo:command"


@dataclass(frozen=True)
class Best:
    """The best trial of a run, and the command to run with its hyperparameters."""

    trial: TuningTrial
    command: str


def tune_command(tuning: CommandTuning) -> Best | None:
    """Tune a command, or go on where a run was broken off.

    Returns:
      The best trial; None where all were infeasible.

    Raises:
      HyperBOError: the prior, the ranges, the command or the database cannot be used, or the run in the
        database is another; or the command does not run or says no number, as its first trials show.
    """
    prior = load_prior(tuning.prior)
    given = read_ranges(prior.description.search_space, tuning.space, tuning.parameters)
    # Before the run begins: one that has begun with ranges that do not fit the command cannot begin again.
    space = space_of(prior.description.search_space, given)
    held = [name for name, each in space.items() if each.single()]
    template = CommandTemplate.of(tuning.command, list(space), held)
    try:
        tuning.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot be made: {error.strerror}",
            where=str(tuning.folder),
            fix="choose another folder by --out",
        ) from error
    storage = tuning.storage or f"sqlite:///{tuning.out / 'runs.db'}"
    tuner = Tuner(prior, given, storage, tuning.name, tuning.batch, tuning.seed)
    columns = [name for name in space if name not in held]
    _introduce(tuning, prior, tuner)
    with ExitStack() as stack:
        groups = stack.enter_context(ProcessGroups())
        run = CommandRun(tuning, template, tuner, columns, groups, stack.enter_context(shown()))
        stack.callback(run.close)
        run.recover()
        run.go()
    best = tuner.best
    if best is None:
        return None
    arguments = template.arguments(best.hyperparameters, run.folder(best))
    return Best(best, shlex.join(arguments))


def _introduce(tuning: CommandTuning, prior: Prior, tuner: Tuner) -> None:
    """Say what is tuned, and what may not be as the user thinks."""
    direction = output_warping(prior.description.output_warping).direction
    wanted = "minimised" if direction == "minimize" else "maximised"
    say(f"{tuning.prior}: the objective is to be {wanted}; trials in {tuning.folder}")
    has_results = any(trial.status in ("done", "infeasible") for trial in tuner.trials)
    with database_errors(tuner.study):
        before = tuner.study.user_attrs.get(_COMMAND)
        if before != tuning.command and has_results:
            say(f"its trials are of another command, {before}: are the objectives comparable?")
        else:
            tuner.study.set_user_attr(_COMMAND, tuning.command)
