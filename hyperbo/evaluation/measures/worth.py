r"""What a prior is worth: its regret on tasks it was not trained on, beside what needs no prior.

The regret of trial i of a task is a share, so that tasks can be compared whatever their unit,

.. math:: r_i = \min\left\{\frac{\max y - y_i}{\max y - \mathrm{median}\, y}, 1\right\},

over the trials with a value: 0 at the best recorded trial, 1 at the median one, at all below it and where a
trial is infeasible. The median, because one value that is far too low would make a range useless. That of a
run after b trials is the lowest of them. Intervals are over folds (`hyperbo.evaluation.measures.clusters`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int64

from hyperbo.evaluation.measures.clusters import Estimate, cluster_means, estimate
from hyperbo.storage.printable import count

BUDGETS = (1, 5, 10, 20)
PRIOR, RANDOM, AVERAGE, TPE = "this prior", "random search", "best-average order", "Optuna TPE"
METHODS = (PRIOR, RANDOM, AVERAGE, TPE)
# A prior helps if it is ahead of these: what a user without past trials has.
WITHOUT_PAST_TRIALS = (RANDOM, TPE)

Verdict = Literal["helps", "does not help", "cannot be told"]


def trial_regrets(
    y: Float64[np.ndarray, " n"], feasible: Bool[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """The regret of each trial of a task, between 0 and 1.

    Args:
      y: warped objective, to be maximised; any number where a trial is infeasible.
      feasible: which trials have a value; at least one has.

    >>> trial_regrets(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, True, False])).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    best, middle = np.max(y[feasible]), np.median(y[feasible])
    # Where half of the trials are as good as the best, the others are as bad as the worst.
    extent = best - middle if best > middle else np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        return np.where(feasible, np.minimum((best - y) / extent, 1.0), 1.0)


def regret_after(
    regrets: Float64[np.ndarray, " n"], rows: Int64[np.ndarray, "*runs t"], budgets: Sequence[int] = BUDGETS
) -> Float64[np.ndarray, "*runs b"]:
    """The lowest regret of each run after some numbers of trials.

    Args:
      regrets: of the task's trials.
      rows: the trials of each run, in their order.
      budgets: numbers of trials; a run that has fewer counts as it ended.
    """
    lowest = np.minimum.accumulate(regrets[rows], axis=-1)
    return lowest[..., [min(budget, rows.shape[-1]) - 1 for budget in budgets]]


def random_regret(
    regrets: Float64[np.ndarray, " n"], budgets: Sequence[int] = BUDGETS
) -> Float64[np.ndarray, " b"]:
    r"""The expected regret of random search that tries no trial twice; nothing is drawn.

    With the regrets in ascending order, the lowest of b is not among the first i with the probability

    .. math:: S_i = \binom{n - i}{b} / \binom{n}{b} = \prod_{j=0}^{b-1} \frac{n - i - j}{n - j},
              \qquad \mathrm{E} = \sum_{i=1}^n r_{(i)} (S_{i-1} - S_i).

    >>> random_regret(np.array([0.0, 1.0, 1.0]), (1, 2, 3)).round(6).tolist()
    [0.666667, 0.333333, 0.0]
    """
    ordered, n = np.sort(regrets), len(regrets)
    left = n - np.arange(n + 1)
    expected = []
    for budget in budgets:
        drawn = np.arange(min(budget, n))
        beyond = np.prod(np.maximum(left[:, None] - drawn, 0) / (n - drawn), axis=1)
        expected.append(ordered @ (beyond[:-1] - beyond[1:]))
    return np.array(expected)


@dataclass(frozen=True)
class Worth:
    """What was measured of a prior, on tasks left out.

    Attributes:
      left_out: what a fold leaves out, `task` or `task dataset`.
      folds: how many were measured.
      of_folds: how many there are.
      seed: of the draw of folds, of the training and of the runs.
      tasks: how many tasks were tested.
      budgets: numbers of trials.
      regret: by method, an estimate for each budget.
      ahead_by: by method, how much lower the prior's regret is, in the mean over the budgets.
    """

    left_out: str
    folds: int
    of_folds: int
    seed: int
    tasks: int
    budgets: tuple[int, ...]
    regret: Mapping[str, tuple[Estimate, ...]]
    ahead_by: Mapping[str, Estimate]

    @property
    def verdict(self) -> Verdict:
        """Whether the prior is ahead of random search and of TPE, by the intervals.

        It helps where both intervals are above 0, and does not help where one of them has nothing above 0.
        """
        known = [self.ahead_by[name] for name in WITHOUT_PAST_TRIALS]
        if all(each.lower > 0.0 for each in known):
            return "helps"
        return "does not help" if any(each.upper <= 0.0 for each in known) else "cannot be told"

    def evidence(self) -> dict[str, Any]:
        """Plain JSON values, for the history of a line; a bound that is unknown is None."""
        return _without_nan(asdict(self) | {"verdict": self.verdict})

    @classmethod
    def from_evidence(cls, evidence: Mapping[str, Any]) -> Worth:
        """Read what `evidence` made."""
        fields = {name: value for name, value in evidence.items() if name != "verdict"}
        regret = {name: tuple(map(_estimate, each)) for name, each in fields.pop("regret").items()}
        ahead_by = {name: _estimate(each) for name, each in fields.pop("ahead_by").items()}
        return cls(**{**fields, "budgets": tuple(fields["budgets"])}, regret=regret, ahead_by=ahead_by)

    def lines(self) -> list[str]:
        """The table and the verdict, for people."""
        some = "" if self.folds == self.of_folds else f" of {self.of_folds}, drawn by seed {self.seed},"
        head = (
            f"worth: {count(self.folds, self.left_out)}{some} left out one by one, "
            f"{count(self.tasks, 'task')} tested on recorded trials, each tried once"
        )
        unit = "regret: 0 the best recorded trial, 1 a median one; mean [95 % interval over what is left out]"
        cells = [["after", *(str(budget) for budget in self.budgets)]]
        cells += [[name, *map(_shown_regret, self.regret[name])] for name in METHODS]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        others = [name for name in METHODS if name != PRIOR]
        apart = ", ".join(f"{name} {_shown(self.ahead_by[name])}" for name in others)
        said = {
            "helps": "the prior helps: it is ahead of random search and TPE",
            "does not help": "the prior does not help: it is not ahead of random search and TPE",
            "cannot be told": "whether the prior helps cannot be told: to random search or TPE, an interval "
            + ("includes 0" if self.folds > 1 else "needs two parts left out"),
        }[self.verdict]
        better = self.ahead_by[AVERAGE].upper < 0.0
        ahead = [f"the {AVERAGE} is ahead of it on these trials"] if better else []
        return [head, unit, *table, f"behind the prior, mean over the budgets: {apart}", said, *ahead]


def measure_worth(
    regrets: Mapping[str, Float64[np.ndarray, "tasks b"]],
    folds: Sequence[str],
    *,
    left_out: str,
    of_folds: int,
    seed: int,
    budgets: Sequence[int] = BUDGETS,
) -> Worth:
    """Estimates over folds of the regrets of all methods.

    Args:
      regrets: by method, the regret on each task after each budget.
      folds: of each task, the name of the fold that tested it.
      left_out: as in `Worth`, like the further ones.
      of_folds: likewise.
      seed: likewise.
      budgets: likewise.
    """
    clusters = pd.Series(list(folds))

    def over_folds(values: Float64[np.ndarray, " tasks"]) -> Estimate:
        return estimate(cluster_means(pd.Series(values), clusters))

    ahead = {name: (regrets[name] - regrets[PRIOR]).mean(axis=1) for name in METHODS if name != PRIOR}
    return Worth(
        left_out,
        len(set(folds)),
        of_folds,
        seed,
        len(folds),
        tuple(budgets),
        {name: tuple(over_folds(column) for column in regrets[name].T) for name in METHODS},
        {name: over_folds(values) for name, values in ahead.items()},
    )


def _estimate(values: Mapping[str, float | None]) -> Estimate:
    return Estimate(**{name: math.nan if each is None else each for name, each in values.items()})


def _shown(found: Estimate) -> str:
    if math.isnan(found.lower):
        return f"{found.mean:.3f} [no interval]"
    return f"{found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}]"


def _shown_regret(found: Estimate) -> str:
    """An estimate of what is between 0 and 1; its interval is cut off there."""
    return _shown(Estimate(found.mean, *np.clip([found.lower, found.upper], 0.0, 1.0).tolist()))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value
