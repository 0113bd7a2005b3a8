"""Work in batches of runs of which some may fail: a failure costs its own run, not the batch."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence

from flows.identities import Key, RunFailures
from flows.progress import say
from hyperbo.errors import HyperBOError
from hyperbo.evaluation.findings import count

# Works on runs, and returns those that failed by themselves.
Work = Callable[[Sequence[Key]], Mapping[Key, Exception]]


def isolate(
    what: str,
    keys: Sequence[Key],
    work: Work,
    finished: Callable[[Key], bool],
) -> dict[Key, str]:
    """Do work on runs as one batch; where the batch fails as a whole, on each that is left alone.

    Args:
      what: the work, for people.
      keys: the runs.
      work: works on some of them, records each that it finishes, and returns those that failed by
        themselves: these are not tried alone, since others did not make them fail.
      finished: whether a run is recorded.

    Returns:
      The runs that failed, and why.

    Raises:
      OSError: files cannot be written or read, which no method is to blame for.
    """
    failed = _attempt(work, keys)
    if isinstance(failed, Exception):
        failed = _one_by_one(what, keys, work, finished, failed)
    _tell(what, failed)
    return {key: _reason(error) for key, error in failed.items()}


def _one_by_one(
    what: str, keys: Sequence[Key], work: Work, finished: Callable[[Key], bool], error: Exception
) -> dict[Key, Exception]:
    """What fails alone too, where a batch failed as a whole."""
    left = [key for key in keys if not finished(key)]
    if not left:
        raise error
    if len(keys) == 1:
        return {keys[0]: error}
    say(f"{what}: {_reason(error)}; trying {len(left)} one by one")
    failed: dict[Key, Exception] = {}
    for key in left:
        outcome = _attempt(work, [key])
        failed |= {key: outcome} if isinstance(outcome, Exception) else outcome
    return failed


def tell_single_runs(what: str, failed: Mapping[Key, RunFailures]) -> None:
    """One line where single runs of Bayesian optimization failed, beside others of their simulations."""
    reasons = [reason for of_key in failed.values() for reason in of_key.values()]
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
    """One line for each reason, with a traceback where it is no error of ours."""
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
