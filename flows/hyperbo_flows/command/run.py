"""The trials that one process runs: it starts commands, reads their results, and tells the tuner."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import IO

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.printable import count
from hyperbo.tuning.trial import TuningTrial, warped
from hyperbo.tuning.tuner import Tuner
from hyperbo_flows.command.display import Show, View
from hyperbo_flows.command.processes import ProcessGroups
from hyperbo_flows.command.template import CommandTemplate, CommandTuning
from hyperbo_flows.command.trial_folder import (
    STDERR,
    STDOUT,
    Claim,
    CommandResult,
    last_lines,
    read_result,
    result_of,
    write_result,
)
from hyperbo_flows.process.progress import say

_POLL = 0.05
# If the first trials, this many, give no number, then the command is wrong, not the hyperparameters.
_PATIENCE = 3


@dataclass
class _Started:
    """A trial whose command was started, and this process's lock on it."""

    trial: TuningTrial
    claim: Claim
    arguments: list[str]
    process: Popen[bytes]
    # By the monotonic clock.
    started: float = field(default_factory=time.monotonic)


class CommandRun:
    """The trials of one process."""

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
        self._warping = tuner.belief.warping
        self._running: dict[int, _Started] = {}
        # Ended without a number before any trial gave one: infeasible if the command turns out to work.
        self._undecided: list[tuple[_Started, CommandResult]] = []
        self._seconds: dict[int, float] = {}
        self._reasons: dict[int, str] = {}
        self._trials = tuner.trials

    def folder(self, trial: TuningTrial) -> Path:
        """The folder of a trial."""
        return self._tuning.folder / f"{trial.number:04d}"

    def recover(self) -> None:
        """Take over the trials of a killed process, and say how many trials there are."""
        elsewhere = 0
        for trial in [each for each in self._trials if each.status == "running"]:
            claim = Claim.of_gone_process(self.folder(trial))
            if claim is None:
                elsewhere += 1
                continue
            result = read_result(self.folder(trial))
            if result is None:
                say(f"trial {trial.number} was interrupted; its hyperparameters are tried again")
                self._give_up(trial, claim)
            else:
                say(f"trial {trial.number} had ended: {result.status}")
                self._tell(trial, claim, result)
        if elsewhere:
            say(f"{count(elsewhere, 'trial')} of other processes left alone")
        self._trials = self._tuner.trials
        if self._counted():
            say(f"{self._counted()} of {self._tuning.trials} trials are done or running")

    def go(self) -> None:
        """Run trials until their number is reached.

        Raises:
          NotAvailableError: the command cannot be started.
          InvalidInputError: the command gives no number or an unusable one, or the database cannot be used.
          NumericalError: the acquisition function is nowhere finite.
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
            running, result = self._undecided[-1]
            first = count(len(self._undecided), "trial")
            raise InvalidInputError(
                f"none of the first {first} gave a number; the last: {result.reason}",
                where="command",
                fix="correct it; if the hyperparameters are the cause, let the command print nan and end "
                f"with 0; {last_lines(self.folder(running.trial))}",
            )

    def close(self) -> None:
        """Stop the running commands. Their hyperparameters are tried again when the run continues."""
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
        self._trials = self._tuner.trials

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
        """Read the commands that have ended, and stop those that take too long."""
        timeout = self._tuning.timeout
        for running in list(self._running.values()):
            code = self._groups.ended(running.process)
            seconds = time.monotonic() - running.started
            if code is None:
                if timeout is None or seconds <= timeout:
                    continue
                self._groups.end([running.process])
            result = result_of(
                self.folder(running.trial), code, seconds, timeout, self._tuning.objective_file
            )
            self._take(self._running.pop(running.trial.number), result)

    def _take(self, running: _Started, result: CommandResult) -> None:
        self._require_usable(running, result)
        self._undecided.append((running, result))
        works = any(trial.status in ("done", "infeasible") for trial in self._trials)
        while self._undecided and (works or result.has_number):
            self._write_and_tell(*self._undecided.pop(0))

    def _require_usable(self, running: _Started, result: CommandResult) -> None:
        """Stop the run at a result that the command would give every time."""
        trial, reason = running.trial, result.reason
        fix = "let the command print the objective on its last line, or write it to the --objective-file"
        if result.objective is not None:
            try:
                warped(self._warping, result.objective)
                return
            except InvalidInputError as error:
                reason, fix = error.what, error.fix
        elif result.status != "failed":
            return
        self._give_up(trial, running.claim)
        raise InvalidInputError(
            reason, where=f"trial {trial.number}", fix=f"{fix}; {last_lines(self.folder(trial))}"
        )

    def _write_and_tell(self, running: _Started, result: CommandResult) -> None:
        trial = running.trial
        write_result(
            self.folder(trial),
            result,
            trial=trial.number,
            hyperparameters=dict(trial.hyperparameters),
            command=running.arguments,
        )
        self._tell(trial, running.claim, result)

    def _tell(self, trial: TuningTrial, claim: Claim, result: CommandResult) -> None:
        if result.metric:
            self._tuner.doubts.of_name(result.metric, f"trial {trial.number}")
        self._tuner.tell(trial, result.objective, infeasible=result.objective is None, reason=result.reason)
        claim.release(self.folder(trial))
        self._seconds[trial.number] = result.seconds
        if result.reason:
            self._reasons[trial.number] = f"{result.reason} (see {self.folder(trial) / STDERR})"
        self._trials = self._tuner.trials
        self._show(self._view(), trial.number)

    def _give_up(self, trial: TuningTrial, claim: Claim | None) -> None:
        """Mark a trial as failed; the next trial tries the same hyperparameters."""
        self._tuner.give_up(trial)
        if claim is not None:
            claim.release(self.folder(trial))

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
