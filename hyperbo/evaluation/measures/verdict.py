r"""The verdict of an evaluation: whether its first method is ahead of the best baseline, and how much sooner.

The unit is the seed, that is, the prior. Two methods are compared by the mean regret over tasks,

.. math:: d_t = \frac{1}{S} \sum_s \left(r_{st} - r'_{st}\right),

after each iteration t and in the mean over all iterations. Intervals of differences are Student's over seeds,
of 95 %, each for one number alone: a bootstrap of five seeds would tell two equal methods apart in 18 of 100
evaluations, and one of two seeds in 48. Those of ratios are percentile bootstraps, rough with few seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.evaluation.measures.comparisons import TIE_TOLERANCE
from hyperbo.evaluation.measures.findings import WITHOUT_MODEL, number
from hyperbo.evaluation.measures.pace import Pace, pace_of, said_pace
from hyperbo.evaluation.measures.regret import mean_over_tasks
from hyperbo.evaluation.measures.spread import student_intervals
from hyperbo.evaluation.records.metadata import EvaluationMetadata, method_of
from hyperbo.evaluation.records.run_array import RunArray, comparable
from hyperbo.storage.printable import count

# Of `hyperbo.methods.METHODS`: those that use the training tasks simply, or not at all.
BASELINES = (*WITHOUT_MODEL, "Table", "STBO", "STBOH", "Mix")
_MOST_SPANS = 3

Standing = Literal["ahead", "behind", "undecided", "one seed"]


@dataclass(frozen=True)
class Verdict:
    """One method beside the best baseline.

    Attributes:
      method: the method that the evaluation is about.
      rival: the baseline with the lowest mean regret over tasks, seeds and iterations. Where the method is a
        baseline itself, or none was run, the best of all other methods.
      rival_is_baseline: whether the rival was chosen among baselines.
      standing: `ahead` or `behind` where the interval of the difference excludes zero.
      difference: mean regret of the method minus the rival's, over tasks, seeds and iterations.
      lower: lower end of its 95 % interval over seeds, Student's.
      upper: its upper end; both NaN with fewer than two seeds.
      ahead_after: the iterations after which the method is ahead: the interval there is below zero.
      behind_after: those after which it is behind. With one seed, where its regret is lower, and higher.
      iterations: iterations of each run.
      pace: how soon the one that is ahead, or has the lower regret, reaches the other one's final regret.
      late: how soon the method reaches the final regret of the rival that ends lowest; None where that is
        `rival` itself.
      tasks: tasks that all compared methods completed.
      all_tasks: all tasks of the evaluation.
    """

    method: str
    rival: str
    rival_is_baseline: bool
    standing: Standing
    difference: float
    lower: float
    upper: float
    ahead_after: tuple[int, ...]
    behind_after: tuple[int, ...]
    iterations: int
    pace: Pace
    late: Pace | None
    tasks: int
    all_tasks: int

    @property
    def sentence(self) -> str:
        """The verdict as one sentence, and a second one where another rival is the best at the end."""
        over = "" if self.tasks == self.all_tasks else f"On {self.tasks} of {count(self.all_tasks, 'task')}, "
        if self.standing == "one seed":
            said = self._of_one_seed()
        elif self.standing == "undecided":
            said = self._undecided()
        else:
            said = self._decided()
        if self.late is not None and self.standing != "one seed":
            said += (
                f". After {count(self.iterations, 'iteration')} the {self._kind} is {self.late.other}: "
                f"{said_pace(self.late, self.method)}"
            )
        return f"{over}{said}." if over else f"{said[0].upper()}{said[1:]}."

    @property
    def _rival(self) -> str:
        return f"{self.rival}, the {self._kind}"

    @property
    def _kind(self) -> str:
        return "best baseline" if self.rival_is_baseline else "best of the others"

    def _of_one_seed(self) -> str:
        lower = self.difference <= 0.0
        after = self.ahead_after if lower else self.behind_after
        return (
            f"with one seed it cannot be told whether {self.method} is ahead of {self._rival}; its regret is "
            f"{'lower' if lower else 'higher'} {spans(after) if after else 'after no iteration'}"
        )

    def _undecided(self) -> str:
        said = [
            f"is {word} {spans(after)}"
            for word, after in (("ahead", self.ahead_after), ("behind", self.behind_after))
            if after
        ]
        return (
            f"it cannot be told whether {self.method} is ahead of {self._rival}: its mean regret minus the "
            f"other's is {number(self.difference)} (95 % interval {number(self.lower)} to "
            f"{number(self.upper)}); {self.method} {' and '.join(said) or 'is ahead after no iteration'}"
        )

    def _decided(self) -> str:
        told = {*self.ahead_after, *self.behind_after}
        neither = tuple(each for each in range(1, self.iterations + 1) if each not in told)
        if self.standing == "ahead":
            missed = [("not ahead", neither), ("behind", self.behind_after)]
        else:
            missed = [("ahead", self.ahead_after)]
        said = [f"is {word} {spans(after)}" for word, after in missed if after]
        said = said or [f"is ahead after {'every' if self.standing == 'ahead' else 'no'} iteration"]
        word = "ahead of" if self.standing == "ahead" else "behind"
        mean = ", in the mean over all iterations" if self.ahead_after and self.behind_after else ""
        after = f"{self.method} {' and '.join(said)}"
        pace = said_pace(self.pace, "it" if self.pace.method == self.method else self.pace.method)
        return f"{self.method} is {word} {self._rival}{mean}: {pace}; {after}"


def verdict_of(regrets: RunArray, metadata: EvaluationMetadata) -> Verdict | None:
    """The verdict on the first method that completed a task; None where no other method did.

    Args:
      regrets: regrets by prior, missing runs included; the tasks are those of `comparable(regrets)`.
      metadata: what the arms are; the methods' labels are those of the regrets.

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    if len(compared.methods) < 2:
        return None
    curves = mean_over_tasks(compared)
    baselines = [method_of(metadata, label) in BASELINES for label in compared.methods]
    rivals = [row for row in range(1, len(baselines)) if baselines[row] and not baselines[0]]
    among_baselines = bool(rivals)
    best, last = _best_of(rivals or list(range(1, len(baselines))), curves)
    method, rival = compared.methods[0], compared.methods[best]
    own, other = curves[0], curves[best]

    apart = own - other
    difference = float(apart.mean())
    lower, upper = student_intervals(apart.mean(axis=1, keepdims=True))
    if len(compared.seeds) < 2:
        standing: Standing = "one seed"
        below, above = apart[0] < -TIE_TOLERANCE, apart[0] > TIE_TOLERANCE
    else:
        low, high = student_intervals(apart)
        below, above = high < -TIE_TOLERANCE, low > TIE_TOLERANCE
        standing = (
            "ahead" if upper[0] < -TIE_TOLERANCE else "behind" if lower[0] > TIE_TOLERANCE else "undecided"
        )
    ahead = difference <= 0.0
    return Verdict(
        method,
        rival,
        among_baselines,
        standing,
        difference,
        float(lower[0]),
        float(upper[0]),
        _after(below),
        _after(above),
        compared.iterations,
        pace_of(method, own, rival, other) if ahead else pace_of(rival, other, method, own),
        None if last == best else pace_of(method, own, compared.methods[last], curves[last]),
        len(compared.tasks),
        len(regrets.tasks),
    )


def _best_of(rivals: Sequence[int], curves: Float64[np.ndarray, "m n iterations"]) -> tuple[int, int]:
    """The rows of lowest regret: in the mean over iterations, and after the last (the same in a tie)."""
    level, final = curves.mean(axis=(1, 2)), curves[:, :, -1].mean(axis=1)
    best = min(rivals, key=lambda row: level[row])
    last = min(rivals, key=lambda row: final[row])
    return best, last if final[last] < final[best] - TIE_TOLERANCE else best


def spans_of(iterations: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of each part of ascending numbers that follow each other.

    >>> spans_of([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    firsts = [each for each in iterations if each - 1 not in iterations]
    lasts = [each for each in iterations if each + 1 not in iterations]
    return list(zip(firsts, lasts, strict=True))


def spans(iterations: Sequence[int]) -> str:
    """After which iterations something is so; many spans are told as their number and ends.

    >>> spans([11]), spans([1, 2, 3, 7])
    ('after iteration 11', 'after iterations 1 to 3 and 7')
    >>> spans([1, 3, 5, 7])
    'after 4 of iterations 1 to 7'
    """
    found = spans_of(iterations)
    if len(found) > _MOST_SPANS:
        return f"after {len(iterations)} of iterations {iterations[0]} to {iterations[-1]}"
    said = [f"{first} to {last}" if last > first else str(first) for first, last in found]
    listed = " and ".join([", ".join(said[:-1]), said[-1]] if said[:-1] else said)
    return f"after iteration{'' if len(iterations) == 1 else 's'} {listed}"


def _after(there: Bool[np.ndarray, " iterations"]) -> tuple[int, ...]:
    return tuple((np.flatnonzero(there) + 1).tolist())
