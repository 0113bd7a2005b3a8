"""How a step is done: its parts are mapped, its runs are batched, and a failure costs its own run only."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from hyperbo.errors import HyperBOError
from hyperbo.storage.printable import count
from hyperbo_flows.experiments.protocols import TestBed
from hyperbo_flows.process.progress import progress_line, say

# A run of a method: the name of its fold, and the seed of what is learned.
Key = tuple[str, int]
# Runs of Bayesian optimization that failed, and why, by test task and seed in records.
RunFailures = Mapping[tuple[str, int], str]
# What failed, by the label of the arm and the run of its method.
Failures = Mapping[tuple[str, Key], RunFailures]
# Shows how far a step is: called with a label and a unit, it gives a callback for units done and in all.
ShowProgress = Callable[[str, str], AbstractContextManager[Callable[[int, int], None]]]
# Works on runs, and returns those that failed by themselves.
Work = Callable[[Sequence[Key]], Mapping[Key, Exception]]


@dataclass(frozen=True)
class Part:
    """A part of a step that can be done apart from the others.

    Attributes:
      label: of the arm.
      held_out: name of the only fold; None for all folds of the arm, as one batch.

    >>> str(Part("H-NLL", "digits"))
    'H-NLL, digits held out'
    """

    label: str
    held_out: str | None = None

    def __str__(self) -> str:
        return self.label if self.held_out is None else f"{self.label}, {self.held_out} held out"


@dataclass(frozen=True)
class Runner:
    """How the parts of a step are run.

    Attributes:
      map: calls a function with each part, as the builtin `map` does; the default does so in order.
      by_fold: whether every fold of an arm is a part, so that several workers share an arm. One worker is
        quicker with an arm as a whole, since less is compiled.
      progress: shows how far a part is.
    """

    map: Callable[[Callable[[Part], Failures], Iterable[Part]], Iterable[Failures]] = map
    by_fold: bool = False
    progress: ShowProgress = progress_line

    def failures(self, work: Callable[[Part], Failures], parts: Iterable[Part]) -> Failures:
        """Do work on all parts, and join what failed."""
        return {key: runs for failed in self.map(work, parts) for key, runs in failed.items()}


IN_ORDER = Runner()


def all_failed(test_bed: TestBed, key: Key, reason: str) -> RunFailures:
    """All runs of Bayesian optimization of a simulation, failed for one reason.

    A prior for use is tested on nothing: its failure is that of a task without a name.
    """
    held_out, seed = key
    tasks = [test.name for test in test_bed.folds[held_out].tests] or [""]
    return {(task, run_seed): reason for task in tasks for run_seed in test_bed.run_seeds(seed)}


def partial_identity(identity: Mapping[str, Any], failures: RunFailures) -> dict[str, Any]:
    """The identity of a simulation without the runs that failed.

    It differs from that of the whole simulation, which stays missing: a later start tries it again.
    """
    return {**identity, "failed": [list(run) for run in failures]}


def isolate(what: str, keys: Sequence[Key], work: Work, finished: Callable[[Key], bool]) -> dict[Key, str]:
    """Do work on runs as one batch. Where the batch fails as a whole, try each run that is left alone.

    Args:
      what: the work, for people.
      keys: the runs.
      work: works on some of them, records each that it finishes, and returns those that failed by
        themselves. These are not tried alone, since no other run made them fail.
      finished: whether a run is recorded.

    Returns:
      The runs that failed, and why.

    Raises:
      OSError: files cannot be written or read. No method is to blame for that.
    """
    failed = _attempt(work, keys)
    if isinstance(failed, Exception):
        left = [key for key in keys if not finished(key)]
        if not left:
            raise failed
        if len(keys) == 1:
            failed = {keys[0]: failed}
        else:
            say(f"{what}: {_reason(failed)}; trying {len(left)} one by one")
            failed = dict[Key, Exception]()
            for key in left:
                alone = _attempt(work, [key])
                failed |= {key: alone} if isinstance(alone, Exception) else alone
    _tell(what, failed)
    return {key: _reason(error) for key, error in failed.items()}


def tell_single_runs(what: str, failed: Mapping[Key, RunFailures]) -> None:
    """Print a line where single runs of Bayesian optimization failed, beside others of their simulations."""
    reasons = [reason for runs in failed.values() for reason in runs.values()]
    if reasons:
        say(f"{what}: {count(len(reasons), 'single run')} failed, the first: {reasons[0]}")


def _attempt(work: Work, keys: Sequence[Key]) -> Mapping[Key, Exception] | Exception:
    try:
        return work(keys)
    except OSError:
        raise
    except Exception as error:
        return error


def _tell(what: str, failed: Mapping[Key, Exception]) -> None:
    """Print a line for each reason, with a traceback where it is no error of this project."""
    by_reason: dict[str, list[Key]] = {}
    for key, error in failed.items():
        by_reason.setdefault(_reason(error), []).append(key)
    for reason, keys in by_reason.items():
        (held_out, seed), error = keys[0], failed[keys[0]]
        say(f"{what}: {len(keys)} failed, the first with {held_out} held out and seed {seed}: {reason}")
        if not isinstance(error, HyperBOError):
            traceback.print_exception(error)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, HyperBOError) else f"{type(error).__name__}: {error}"
