"""A trial of a tuner: what was proposed, what was told, and what may be told."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, get_args

import numpy as np

from hyperbo.data.warping import Direction, OutputWarping
from hyperbo.errors import InvalidInputError
from hyperbo.storage.printable import count
from hyperbo.tuning.belief import RATE

# Where the warpings of rates are defined.
_DEFINED = {
    "negative_log": "tell an error rate or a loss, which is not negative",
    RATE.name: "tell a rate of at most 1: divide a percentage by 100",
}
Status = Literal["done", "infeasible", "failed", "running"]


@dataclass(frozen=True)
class TuningTrial:
    """One trial of a tuner.

    Attributes:
      number: 0, 1, ... in the order of the calls of `ask`.
      hyperparameters: what to try; without those that are inactive.
      status: `running`, `done`, `infeasible` or `failed`.
      objective: the objective value that was told, not warped; None where there is none.
    """

    number: int
    hyperparameters: Mapping[str, Any]
    status: Status
    objective: float | None


class Infeasible(Exception):  # noqa: N818, as StopIteration: no error of the program
    """What a function that is tuned raises where its hyperparameters have no result.

    `Tuner.optimize` tells the trial as infeasible, and hyperparameters like these are avoided.

    >>> raise Infeasible("out of memory")
    Traceback (most recent call last):
    hyperbo.tuning.trial.Infeasible: out of memory
    """


def best_of(trials: Sequence[TuningTrial], direction: Direction) -> TuningTrial | None:
    """The trial with the best objective, the first of equal ones; None while there is none."""
    sign = 1.0 if direction == "minimize" else -1.0
    done = [each for each in trials if each.status == "done"]
    return min(done, key=lambda each: sign * (each.objective or 0.0), default=None)


def described(trials: Sequence[TuningTrial], best: TuningTrial | None) -> str:
    """How far a run is, as text.

    >>> trial = TuningTrial(0, {}, "done", 0.25)
    >>> described([trial, TuningTrial(1, {}, "running", None)], trial)
    '2 trials: 1 done, 1 running; best 0.25 in trial 0'
    """
    counts = Counter(each.status for each in trials)
    parts = ", ".join(f"{counts[status]} {status}" for status in get_args(Status) if counts[status])
    found = "" if best is None else f"; best {best.objective:.6g} in trial {best.number}"
    return f"{count(len(trials), 'trial')}{': ' if parts else ''}{parts}{found}"


def number_of(given: Any) -> int:
    """The number of a trial, given as what `ask` returned or as its number.

    Raises:
      InvalidInputError: it is neither.

    >>> number_of(TuningTrial(3, {}, "running", None)), number_of(3)
    (3, 3)
    """
    if isinstance(given, TuningTrial):
        return given.number
    try:
        return operator.index(given)
    except TypeError as error:
        raise InvalidInputError(
            f"{given!r:.60} is no trial", fix="give what `ask` returned, or the trial's number"
        ) from error


def as_objective(given: Any, where: str) -> float:
    """An objective as a number of Python, which may be NaN or infinite.

    Raises:
      InvalidInputError: it is no number.

    >>> as_objective("0.2", "trial 3")
    Traceback (most recent call last):
    hyperbo.errors.InvalidInputError: trial 3: the objective '0.2' is no number; give one number, such as 0.23
    """
    is_number = isinstance(given, SupportsFloat) and not isinstance(given, bool)
    try:
        value = float(given) if is_number else None
    except (TypeError, ValueError, OverflowError):
        value = None
    if value is None:
        raise InvalidInputError(
            f"the objective {given!r:.60} is no number", where=where, fix="give one number, such as 0.23"
        )
    return value


def finite_objective(given: Any, where: str) -> float:
    """An objective that is a finite number.

    Raises:
      InvalidInputError: it is none.
    """
    value = as_objective(given, where)
    if not math.isfinite(value):
        raise InvalidInputError(f"objective {value}", where=where, fix="tell it infeasible=True")
    return value


def warped(warping: OutputWarping, value: float, where: str = "") -> float:
    """A raw objective value as the value that is maximised.

    Raises:
      InvalidInputError: the warping is not defined at the value.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = float(warping.warp(np.array([value], np.float64))[0])
    if not math.isfinite(y):
        raise InvalidInputError(
            f"the prior's output warping {warping.name} is not defined at the objective {value}",
            where=where,
            fix=_DEFINED.get(warping.name, "tell a finite number"),
        )
    return y
