"""Tuning a user's command: each trial runs it with other hyperparameters and reads its objective."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo.priors.names import UNIVERSAL, load_prior
from hyperbo.tuning.optuna.codes import never_active
from hyperbo.tuning.optuna.database import address_of, database_errors
from hyperbo.tuning.optuna.whole_space import begun
from hyperbo.tuning.trial import TuningTrial
from hyperbo.tuning.tuner import Tuner
from hyperbo_flows.command.display import shown
from hyperbo_flows.command.processes import ProcessGroups
from hyperbo_flows.command.ranges import read_ranges
from hyperbo_flows.command.run import CommandRun
from hyperbo_flows.command.template import CommandTemplate, CommandTuning
from hyperbo_flows.process.progress import say

_COMMAND = "hyperbo:command"


def tune_command(tuning: CommandTuning) -> tuple[TuningTrial, str] | None:
    """Tune a command, or continue an interrupted run.

    Returns:
      The best trial, and the command with its hyperparameters; None where all trials were infeasible.

    Raises:
      InvalidInputError: the ranges, the command, the folder or the database cannot be used, or the command
        gives no number.
      NotAvailableError: there is no such prior or program.
      VersionConflictError: the run in the database was begun with another prior or space.
      NumericalError: the acquisition function is nowhere finite.
    """
    prior = None if tuning.prior == UNIVERSAL else load_prior(tuning.prior)
    given = read_ranges(prior and prior.description.search_space, tuning.space, tuning.parameters)
    if prior is None:
        _require_whole(tuning, given)
    if tuning.storage is not None:
        address_of(tuning.storage)
    # Checked before the run begins: a run that has begun cannot change its ranges.
    belief, space = begun(prior, given, tuning.direction)
    held = [name for name, each in space.items() if each.single()]
    unused = [*held, *never_active(belief.space, space)]
    template = CommandTemplate.of(tuning.command, list(space), unused)
    try:
        tuning.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot be made: {error.strerror}",
            where=str(tuning.folder),
            fix="choose another folder by --out",
        ) from error
    storage = tuning.storage or f"sqlite:///{tuning.out / 'runs.db'}"
    tuner = Tuner(
        prior or UNIVERSAL,
        given,
        storage,
        tuning.name,
        tuning.batch,
        tuning.seed,
        direction=tuning.direction,
    )
    tuner.doubts.option = "--direction {}"
    columns = [name for name in space if name not in held]
    _introduce(tuning, tuner)
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
    return best, shlex.join(arguments)


def _require_whole(tuning: CommandTuning, given: Mapping[str, Any]) -> None:
    """Require what the universal prior has to be told."""
    if not given:
        raise InvalidInputError(
            "no parameter to tune",
            where="--prior universal",
            fix="give each, such as --parameter lr=1e-5:1e-1 --parameter layers=1:4:int, or --space FILE",
        )
    if tuning.direction is None:
        raise InvalidInputError(
            "no direction",
            where="--prior universal",
            fix="give --direction minimize or --direction maximize",
        )


def _introduce(tuning: CommandTuning, tuner: Tuner) -> None:
    """Say what is tuned, and warn if the earlier trials are of another command."""
    wanted = "minimised" if tuner.belief.warping.direction == "minimize" else "maximised"
    say(f"{tuning.prior}: the objective is {wanted}; trials in {tuning.folder}")
    has_results = any(trial.status in ("done", "infeasible") for trial in tuner.trials)
    with database_errors(tuner.study):
        before = tuner.study.user_attrs.get(_COMMAND)
        if before != tuning.command and has_results:
            say(f"warning: the earlier trials are of another command, {before}; compare them with care")
        else:
            tuner.study.set_user_attr(_COMMAND, tuning.command)
