"""Methods compared over all tasks: performance profiles, ranks, iterations to a target, speed-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.regret import mean_over_tasks
from hyperbo.evaluation.measures.spread import standard_deviation
from hyperbo.evaluation.records.run_array import RunArray

# The constants C of performance profiles and of `budget_to_target`.
CRITERIA = (0.05, 0.01, 0.001)
# The shares of runs that `budget_to_target` reports.
SHARES = (0.2, 0.5, 0.8)


def performance_profile(regrets: RunArray, criterion: float) -> Float64[np.ndarray, "methods iterations"]:
    """Share of runs whose regret is strictly below a criterion C, at each iteration.

    (1 / PQ) sum_q sum_p 1[r_t^(p,q) < C] over P tasks and Q seeds, Section 7.3 "Reporting Aggregated Multi-
    task Results".

    Raises:
      InvalidInputError: a run is missing.
    """
    return (regrets.require_complete() < criterion).mean(axis=(1, 2))


def saturated_tasks(regrets: RunArray, iteration: int) -> tuple[str, ...]:
    """Tasks on which every method has zero regret with every seed after an iteration."""
    solved = (regrets.at(iteration) == 0).all(axis=(0, 2))
    return tuple(task for task, all_zero in zip(regrets.tasks, solved, strict=True) if all_zero)


@dataclass(frozen=True)
class Ranks:
    """Ranks at each iteration; 1 is best.

    Attributes:
      per_seed: rank of each method with each seed.
      mean: mean over seeds.
      std: standard deviation over seeds; NaN for a single seed.
    """

    per_seed: Float64[np.ndarray, "methods seeds iterations"]
    mean: Float64[np.ndarray, "methods iterations"]
    std: Float64[np.ndarray, "methods iterations"]


def rank_methods(regrets: RunArray) -> Ranks:
    """Rank methods by mean regret over tasks, for each seed; 1 is the lowest regret.

    Ties share their mean rank. Section 7.3 "Reporting Aggregated Multi-task Results".

    Raises:
      InvalidInputError: a run is missing.
    """
    means = mean_over_tasks(regrets)
    flat = pd.DataFrame(means.reshape(len(means), -1))
    per_seed = flat.rank(axis=0, method="average").to_numpy(np.float64).reshape(means.shape)
    return Ranks(per_seed, per_seed.mean(axis=1), standard_deviation(per_seed, axis=1))


def task_ranks(regrets: RunArray, iteration: int) -> Float64[np.ndarray, "methods tasks"]:
    """Rank methods by regret on each task after an iteration, for each seed, and average over seeds.

    Ties share their mean rank. A method that lacks a seed on the task has NaN; the others are ranked without
    it.
    """
    at = np.where(regrets.complete[..., None], regrets.at(iteration), np.nan)
    ranks = pd.DataFrame(at.reshape(len(at), -1)).rank(axis=0, method="average").to_numpy(np.float64)
    return ranks.reshape(at.shape).mean(axis=2)


def first_iteration(reached: Bool[np.ndarray, "*runs iterations"]) -> Float64[np.ndarray, "*runs"]:
    """The first iteration, counted from 1, at which a condition holds; infinite if it never does."""
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1.0, np.inf)


def budget_to_target(regrets: RunArray, criteria: Sequence[float]) -> pd.DataFrame:
    """Iterations by which 20, 50 and 80 % of a method's runs have regret strictly below a criterion.

    A run that never falls below it counts as infinitely long, so a share that is not reached is infinite. The
    median is the iteration at which the performance profile crosses one half. One row per method and
    criterion: `method`, `criterion`, `lower`, `median`, `upper`, `reached` (how many runs fell below it) and
    `runs`.

    Raises:
      InvalidInputError: a run is missing.
    """
    values = regrets.require_complete()
    rows = []
    for row, method in enumerate(regrets.methods):
        for criterion in criteria:
            needed = first_iteration(values[row] < criterion).ravel()
            # An order statistic: interpolation with infinity would give no usable number.
            budgets = np.quantile(needed, SHARES, method="inverted_cdf")
            rows.append(
                (method, criterion, *map(float, budgets), int(np.isfinite(needed).sum()), needed.size)
            )
    return pd.DataFrame(rows, columns=["method", "criterion", "lower", "median", "upper", "reached", "runs"])


@dataclass(frozen=True)
class Speedup:
    """Speed-up of a method on one task.

    Attributes:
      task: the task.
      alternative: the alternative with the lowest final regret there.
      alternative_iterations: median number of iterations in which the alternative reaches its lowest regret.
      method_iterations: median number of iterations in which the method gets below that regret; infinite if
        it does so with fewer than half of the seeds.
      ratio: the first number divided by the second; 0 if the second is infinite.
    """

    task: str
    alternative: str
    alternative_iterations: float
    method_iterations: float
    ratio: float


def speedups(regrets: RunArray, method: str, alternatives: Sequence[str]) -> tuple[Speedup, ...]:
    """Speed-up on each task, Section 7.4.1 "Holding Out Relevant Tasks".

    The best alternative of a task has the lowest median regret at the last iteration. Among several, it is
    the one that reaches this regret in the fewest iterations. For each seed the method is compared with the
    alternative's run of the same seed, and the medians over seeds are divided. The method must get strictly
    below the alternative's regret; if that is zero, reaching zero is enough.

    Args:
      regrets: complete regrets.
      method: the method that may be faster.
      alternatives: the methods it is compared with.

    Raises:
      InvalidInputError: a run is missing, a name is unknown, or there is no alternative.
    """
    if not alternatives or method in alternatives:
        raise InvalidInputError(
            f"alternatives to {method} are {list(alternatives)}", fix="name other methods"
        )
    values = regrets.require_complete()
    own = values[regrets.method_index(method)]
    rows = [regrets.method_index(alternative) for alternative in alternatives]
    final = np.median(values[rows, :, :, -1], axis=2)
    needed = np.median(first_iteration(values[rows] == values[rows][..., -1:]), axis=2)
    result = []
    for column, task in enumerate(regrets.tasks):
        best = min(range(len(rows)), key=lambda row: (final[row, column], needed[row, column]))
        target = values[rows[best], column, :, -1:]
        passed = (own[column] < target) | ((own[column] == 0) & (target == 0))
        iterations = float(np.median(first_iteration(passed)))
        reference = float(needed[best, column])
        result.append(Speedup(task, alternatives[best], reference, iterations, reference / iterations))
    return tuple(result)
