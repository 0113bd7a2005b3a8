"""The trials of a command that one process runs: started, read, told to the tuner; taken over, given up."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import IO

from flows.command_template import CommandTemplate
from flows.command_tuning import CommandTuning
from flows.process_groups import ProcessGroups
from flows.progress import say
from flows.trial_folder import (
    STDERR,
    STDOUT,
    Claim,
    Outcome,
    last_lines,
    outcome_of,
    read_outcome,
    write_outcome,
)
from flows.tune_display import Show, View
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.evaluation.findings import count
from hyperbo.integrations.database import database_errors
from hyperbo.integrations.study_history import warped
from hyperbo.tuner import Tuner, TuningTrial
from hyperbo.warping import output_warping

_POLL = 0.05
# So many trials without a number, before there is any with one, are the command's fault.
_PATIENCE = 3


@dataclass
class _Started:
    """A trial whose command runs, or that waits for a verdict.

    Attributes:
      trial: what is tried.
      claim: sign that it is this process's.
      arguments: of the command.
      process: the command.
      started: by the monotonic clock.
    """

    trial: TuningTrial
    claim: Claim
    arguments: list[str]
    process: Popen[bytes]
    started: float = field(default_factory=time.monotonic)


class CommandRun:
    """The trials of one process: starts commands, reads what came of them, tells the tuner."""

    def __init__(
        self,
        tuning: CommandTuning,
        template: CommandTemplate,
        tuner: Tuner,
        columns: Sequence[str],
        groups: ProcessGroups,
        show: Show,
    ) -> None:
        self._tuning, self._template, self._tuner = tuning, template, tuner
        self._columns, self._groups, self._show = columns, groups, show
        self._warping = output_warping(tuner.prior.description.output_warping)
        self._running: dict[int, _Started] = {}
        # Ended without a number before there was one: infeasible if the command turns out to work.
        self._undecided: list[tuple[_Started, Outcome]] = []
        self._seconds: dict[int, float] = {}
        self._reasons: dict[int, str] = {}
        self._trials = tuner.trials

    def folder(self, trial: TuningTrial) -> Path:
        """Of a trial."""
        return self._tuning.folder / f"{trial.number:04d}"

    def recover(self) -> None:
        """Take over the trials that a killed process left, and say what is there."""
        elsewhere = 0
        for trial in [each for each in self._trials if each.status == "running"]:
            claim = Claim.of_gone_process(self.folder(trial))
            if claim is None:
                elsewhere += 1
                continue
            outcome = read_outcome(self.folder(trial))
            if outcome is None:
                say(f"trial {trial.number} was broken off; its hyperparameters are tried again")
                self._give_up(trial, claim)
            else:
                say(f"trial {trial.number} had ended: {outcome.status}")
                self._tell(trial, claim, outcome)
        if elsewhere:
            say(f"{count(elsewhere, 'trial')} of other processes left alone")
        self._refresh()
        if self._counted():
            say(f"{self._counted()} of {self._tuning.trials} trials are there")

    def go(self) -> None:
        """Run trials until there are as many as wanted.

        Raises:
          HyperBOError: the command does not keep to what was agreed, or the database cannot be used.
        """
        while True:
            self._collect()
            if self._may_start():
                self._start()
            elif self._running:
                time.sleep(_POLL)
            else:
                break
            self._show(self._view(), None)
        if self._undecided:
            raise self._useless()

    def close(self) -> None:
        """End the commands that run; their hyperparameters are tried again when the run goes on."""
        left = [*self._running.values(), *(running for running, _ in self._undecided)]
        self._groups.end([running.process for running in self._running.values()])
        self._running, self._undecided = {}, []
        for running in left:
            self._give_up(running.trial, running.claim)

    def _may_start(self) -> bool:
        return (
            len(self._running) < self._tuning.jobs
            and len(self._undecided) < _PATIENCE
            and self._counted() < self._tuning.trials
        )

    def _start(self) -> None:
        trial = self._tuner.ask()
        claim = None
        try:
            folder = self.folder(trial)
            claim = Claim.new(folder)
            arguments = self._template.arguments(trial.hyperparameters, folder)
            environment = os.environ if self._tuning.environment is None else self._tuning.environment
            with (folder / STDOUT).open("wb") as output, (folder / STDERR).open("wb") as errors:
                process = self._process(
                    arguments, {**environment, "HYPERBO_TRIAL": str(trial.number)}, output, errors
                )
        except BaseException:
            self._give_up(trial, claim)
            raise
        self._running[trial.number] = _Started(trial, claim, arguments, process)
        self._refresh()

    def _process(
        self, arguments: list[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
    ) -> Popen[bytes]:
        try:
            return self._groups.start(arguments, environment, output, errors)
        except OSError as error:
            raise NotAvailableError(
                f"command: {shlex.join(arguments)} cannot be started: {error.strerror}"
            ) from error

    def _collect(self) -> None:
        """Take in the commands that have ended, and end those that take too long."""
        timeout = self._tuning.timeout
        for running in list(self._running.values()):
            code = self._groups.ended(running.process)
            seconds = time.monotonic() - running.started
            if code is None:
                if timeout is None or seconds <= timeout:
                    continue
                self._groups.end([running.process])
            outcome = outcome_of(
                self.folder(running.trial), code, seconds, timeout, self._tuning.objective_file
            )
            self._take(self._running.pop(running.trial.number), outcome)

    def _take(self, running: _Started, outcome: Outcome) -> None:
        self._require_usable(running, outcome)
        self._undecided.append((running, outcome))
        works = any(trial.status in ("done", "infeasible") for trial in self._trials)
        while self._undecided and (works or outcome.has_number):
            self._write_and_tell(*self._undecided.pop(0))

    def _require_usable(self, running: _Started, outcome: Outcome) -> None:
        """Stop at what a command says that it would say every time."""
        trial, reason = running.trial, outcome.reason
        fix = "let it print the objective on its last line, or write it to a file that --objective-file names"
        if outcome.objective is not None:
            try:
                warped(self._warping, outcome.objective)
                return
            except InvalidInputError as error:
                reason, fix = error.what, error.fix
        elif outcome.status != "failed":
            return
        self._give_up(trial, running.claim)
        raise InvalidInputError(
            reason, where=f"trial {trial.number}", fix=f"{fix}; {last_lines(self.folder(trial))}"
        )

    def _useless(self) -> InvalidInputError:
        """No trial has given a number: the command is mistyped, or does not work at all."""
        running, outcome = self._undecided[-1]
        first = count(len(self._undecided), "trial")
        return InvalidInputError(
            f"none of the first {first} gave a number; the last: {outcome.reason}",
            where="command",
            fix="correct it; if the hyperparameters are to blame, let it print nan and end with 0; "
            + last_lines(self.folder(running.trial)),
        )

    def _write_and_tell(self, running: _Started, outcome: Outcome) -> None:
        trial = running.trial
        write_outcome(
            self.folder(trial),
            outcome,
            trial=trial.number,
            hyperparameters=dict(trial.hyperparameters),
            command=running.arguments,
        )
        self._tell(trial, running.claim, outcome)

    def _tell(self, trial: TuningTrial, claim: Claim, outcome: Outcome) -> None:
        self._tuner.tell(trial, outcome.objective, infeasible=outcome.objective is None)
        claim.release(self.folder(trial))
        self._seconds[trial.number] = outcome.seconds
        if outcome.reason:
            self._reasons[trial.number] = f"{outcome.reason} (see {self.folder(trial) / STDERR})"
        self._refresh()
        self._show(self._view(), trial.number)

    def _give_up(self, trial: TuningTrial, claim: Claim | None) -> None:
        """Nothing is learned from a trial; the next one tries the same."""
        self._tuner.tell(trial, failed=True)
        with database_errors(self._tuner.study):
            self._tuner.study.enqueue_trial(dict(trial.hyperparameters))
        if claim is not None:
            claim.release(self.folder(trial))

    def _refresh(self) -> None:
        self._trials = self._tuner.trials

    def _counted(self) -> int:
        return sum(trial.status != "failed" for trial in self._trials)

    def _view(self) -> View:
        now = time.monotonic()
        running = {number: now - each.started for number, each in self._running.items()}
        return View(
            self._trials,
            self._tuning.trials,
            self._warping.direction,
            self._columns,
            {**self._seconds, **running},
            self._reasons,
        )
