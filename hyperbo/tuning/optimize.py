"""Trials of a function, one after the other or several at a time, until a number of them has ended."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.tuning.progress import say, shown_trials
from hyperbo.tuning.trial import Infeasible, TuningTrial, as_objective, best_of, warped

if TYPE_CHECKING:
    from hyperbo.tuning.tuner import Tuner

_LONGEST_REASON = 500


@dataclass(frozen=True)
class _Ended:
    """A trial whose function has ended: with what it returned, or with what it raised."""

    trial: TuningTrial
    value: Any = None
    error: BaseException | None = None


def run_trials(tuner: Tuner, function: Callable[..., Any], trials: int, jobs: int) -> None:
    """Run trials until a number of them has ended. `Tuner.optimize` says what a user can rely on.

    The calling thread asks and tells; with one job it runs the function, too. With several, threads run the
    function. They are not waited for when the process ends.
    """
    for name, given in (("trials", trials), ("jobs", jobs)):
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise InvalidInputError(
                f"{name} = {given!r:.60}", where="optimize", fix="give a whole number from 1"
            )
    _require_callable(tuner, function)
    queue: SimpleQueue[_Ended] = SimpleQueue()
    running: dict[int, TuningTrial] = {}
    ended: _Ended | None = None
    failure: BaseException | None = None
    try:
        with shown_trials(trials) as show:
            done, standing = _standing(tuner)
            show(done, standing)
            while True:
                while failure is None and len(running) < jobs and done + len(running) < trials:
                    show(done, f"{standing}, choosing the next")
                    trial = tuner.ask()
                    running[trial.number] = trial
                    show(done, f"{standing}, {len(running)} running")
                    _start(function, trial, queue, in_thread=jobs > 1)
                if not running:
                    break
                ended = queue.get()
                error = _told(tuner, ended)
                del running[ended.trial.number]
                failure = failure or error
                done, standing = _standing(tuner)
                show(done, f"{standing}, {len(running)} running" if running else standing)
    except BaseException as error:
        # Ctrl-C, or a database that cannot be used. What has ended is told, as far as this can be done.
        for each in [*([ended] if ended else []), *_waiting(queue)]:
            with suppress(HyperBOError):
                _told(tuner, each)
        given_up = [number for number, trial in running.items() if _given_up(tuner, trial)]
        if isinstance(error, KeyboardInterrupt):
            again = (
                f"; trials {', '.join(map(str, given_up))} were running, and are tried again"
                if given_up
                else ""
            )
            say(f"interrupted: what has ended is kept{again} by the next call of optimize")
        raise
    if failure is not None:
        raise failure


def _require_callable(tuner: Tuner, function: Any) -> None:
    """Refuse a function that cannot take the hyperparameters, before anything runs."""
    if not callable(function):
        raise InvalidInputError(f"{function!r:.60} cannot be called", where="optimize", fix="give a function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    name = getattr(function, "__name__", type(function).__name__)
    call = f"{name}({', '.join(f'{each}=...' for each in tuner.space)})"
    known = tuner.belief.space
    always = [each for each in tuner.space if each not in known.names or not known.parameter(each).condition]
    for names in (tuner.space, always):
        try:
            signature.bind(**dict.fromkeys(names))
        except TypeError as error:
            raise InvalidInputError(
                f"{name}{signature} cannot be called as {call}: {error}",
                where="optimize",
                fix="give a function of these parameters; for one dictionary: lambda **values: train(values)",
            ) from error


def _start(
    function: Callable[..., Any], trial: TuningTrial, queue: SimpleQueue[_Ended], in_thread: bool
) -> None:
    def work() -> None:
        try:
            queue.put(_Ended(trial, function(**trial.hyperparameters)))
        except BaseException as error:
            if not in_thread and not isinstance(error, Exception):
                raise
            queue.put(_Ended(trial, error=error))

    if in_thread:
        threading.Thread(target=work, name=f"trial {trial.number}", daemon=True).start()
    else:
        work()


def _told(tuner: Tuner, ended: _Ended) -> BaseException | None:
    """Tell the result of a trial; returns what is to be raised where it has none.

    Raises:
      HyperBOError: the database cannot be used.
    """
    trial, error = ended.trial, ended.error
    where = f"trial {trial.number}"
    if error is None:
        try:
            value = as_objective(ended.value, where)
            if math.isfinite(value):
                warped(tuner.belief.warping, value, where)
        except InvalidInputError as refused:
            error = refused
        else:
            if math.isfinite(value):
                tuner.tell(trial, value)
            else:
                tuner.tell(trial, infeasible=True, reason=f"objective {value}")
            return None
    reason = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
    if isinstance(error, Infeasible):
        tuner.tell(trial, infeasible=True, reason=str(error)[:_LONGEST_REASON])
        return None
    tuner.give_up(trial, reason)
    error.add_note(f"{where}, {dict(trial.hyperparameters)}: the next call of optimize tries it again")
    return error


def _given_up(tuner: Tuner, trial: TuningTrial) -> bool:
    try:
        tuner.give_up(trial, "interrupted")
    except HyperBOError:
        # It was told in the end, or nothing can be written.
        return False
    return True


def _waiting(queue: SimpleQueue[_Ended]) -> list[_Ended]:
    found = []
    with suppress(Empty):
        while True:
            found.append(queue.get_nowait())
    return found


def _standing(tuner: Tuner) -> tuple[int, str]:
    """The number of trials that have ended with a result, and the best of them as text."""
    trials = tuner.trials
    infeasible = sum(each.status == "infeasible" for each in trials)
    done = sum(each.status == "done" for each in trials)
    best = best_of(trials, tuner.belief.warping.direction)
    said = "no result yet" if best is None else f"best {best.objective:.5g} in trial {best.number}"
    return done + infeasible, said + (f", {infeasible} infeasible" if infeasible else "")
