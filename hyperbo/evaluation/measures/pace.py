"""How soon one method reaches the final regret of another one, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from hyperbo.evaluation.measures.aggregates import first_iteration
from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE
from hyperbo.evaluation.measures.findings import number
from hyperbo.evaluation.measures.spread import interval_of, resampled_means
from hyperbo.storage.printable import count

Curves = Float64[np.ndarray, "n iterations"]


@dataclass(frozen=True)
class Pace:
    """How soon a method reaches the final regret of another one, by their mean regret over tasks and seeds.

    Attributes:
      method: the method.
      other: the other one.
      regret: the other one's regret after the last iteration.
      iterations: iterations in which the method reaches it; infinite if it never does.
      other_iterations: iterations in which the other one reaches it first.
      ratio: the second number divided by the first: above 1 the method is sooner, below 1 later, 0 is never.
      lower: lower end of the 95 % bootstrap interval of the ratio, resampling seeds.
      upper: its upper end; both NaN with fewer than two seeds.
    """

    method: str
    other: str
    regret: float
    iterations: float
    other_iterations: float
    ratio: float
    lower: float
    upper: float


def pace_of(method: str, own: Curves, other_method: str, other: Curves) -> Pace:
    """How soon a method reaches the final regret of another one, from a regret curve of each seed."""
    need, other_need = _needs(own.mean(axis=0, keepdims=True), other.mean(axis=0, keepdims=True))
    lower = upper = np.full(1, np.nan)
    if len(own) > 1:
        needs, other_needs = _needs(resampled_means(own), resampled_means(other))
        lower, upper = interval_of((other_needs / needs)[:, None])
    return Pace(
        method,
        other_method,
        float(other.mean(axis=0)[-1]),
        float(need[0]),
        float(other_need[0]),
        float(other_need[0] / need[0]),
        float(lower[0]),
        float(upper[0]),
    )


def _needs(own: Curves, other: Curves) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """The iterations in which curves reach the last value of other ones, and in which those do."""
    target = other[:, -1:] + TIE_TOLERANCE
    return first_iteration(own <= target), first_iteration(other <= target)


def times(ratio: float) -> str:
    """A ratio of iterations in words: a speed-up below one is a slow-down.

    >>> times(2.5), times(0.5), times(0.0)
    ('2.5 times sooner', '2 times later', 'never')
    """
    if ratio == 0.0:
        return "never"
    if ratio == 1.0:
        return "as soon"
    return f"{number(ratio, 2)} times sooner" if ratio > 1.0 else f"{number(1 / ratio, 2)} times later"


def speed(ratio: float) -> str:
    """A speed-up of a table in words: one below one is a slow-down, and 0 is no success at all.

    >>> speed(2.5), speed(0.5), speed(0.0)
    ('speed-up 2.5', 'slow-down 2', 'not passed')
    """
    if ratio == 0.0:
        return "not passed"
    return f"slow-down {number(1 / ratio, 2)}" if ratio < 1.0 else f"speed-up {number(ratio, 2)}"


def said_pace(pace: Pace, who: str) -> str:
    """How soon it is, in words, with its interval."""
    if math.isinf(pace.iterations):
        return f"{who} never reaches {pace.other}'s final regret"
    bounds = f"{times(pace.lower)} to {times(pace.upper)}"
    if pace.lower > 1.0:
        bounds = f"{number(pace.lower, 2)} to {number(pace.upper, 2)}"
    return (
        f"{who} reaches {pace.other}'s final regret {times(pace.ratio)} (95 % interval {bounds}), "
        f"after {count(int(pace.iterations), 'iteration')} instead of {pace.other_iterations:.0f}"
    )
