"""Paired comparisons of two methods over pre-training seeds.

The unit of analysis is the seed, that is, the prior: runs with one seed share pre-trained priors and are not
independent of each other. Few seeds tell little. A bootstrap of 5 values resamples only these 5, so its
interval is too narrow. The exact sign-flip test has 2^5 = 32 outcomes, so its p-value is never below
2/32 = 0.0625, however large the difference. Five seeds can show that a difference is consistent, not that it
is significant at 5 %. Neither number is corrected for the number of comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from hyperbo.evaluation.measures.spread import bootstrap_interval
from hyperbo.evaluation.records.run_array import RunArray

# Means of the same regrets, summed in another order, differ by rounding.
TIE_TOLERANCE = 1e-9
# 2^20 sums take 8 MB; with more seeds the sign flips are drawn at random.
_MOST_EXACT_SEEDS = 20
_FLIPS_DRAWN = 10_000


@dataclass(frozen=True)
class Tally:
    """How often the first of two methods has lower, equal (up to 1e-9) and higher regret."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class PairedComparison:
    """Two methods on the same tasks with the same seeds, after the same number of iterations.

    Attributes:
      first: the first method.
      second: the second method.
      iteration: the budget.
      tasks: tasks that both methods completed with all of `seeds`.
      seeds: seeds with which both methods have a complete run on some task.
      missing_tasks: the other tasks of the evaluation; they are neither wins nor losses.
      missing_seeds: the other seeds of the evaluation.
      per_seed: for each seed, the mean over tasks of the first's regret minus the second's; negative favours
        the first.
      difference: mean of `per_seed`.
      lower: lower end of the 95 % bootstrap interval of the difference, resampling seeds.
      upper: its upper end; both NaN with fewer than two seeds.
      p_value: of the sign-flip test that the difference is zero.
      by_task: tally over tasks of the means over seeds.
      by_seed: tally over seeds of the means over tasks.
    """

    first: str
    second: str
    iteration: int
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    missing_tasks: tuple[str, ...]
    missing_seeds: tuple[int, ...]
    per_seed: Float64[np.ndarray, " seeds"]
    difference: float
    lower: float
    upper: float
    p_value: float
    by_task: Tally
    by_seed: Tally


def paired_comparison(
    regrets: RunArray, first: str, second: str, iteration: int, seed: int = 0
) -> PairedComparison:
    """Compare two methods after an iteration, on the tasks and seeds that both completed.

    A seed without any complete run is left out first, then every task that lacks another seed. So an
    evaluation that stopped between two seeds keeps its tasks.

    Args:
      regrets: regrets, missing runs included.
      first: the first method.
      second: the second method.
      iteration: the budget, counted from 1.
      seed: seed of the bootstrap.

    Returns:
      The comparison. If no task was completed by both methods, its numbers are NaN and its tallies 0.

    Raises:
      InvalidInputError: a method or the iteration is unknown.
    """
    pair = [regrets.method_index(first), regrets.method_index(second)]
    at = regrets.at(iteration)[pair]
    whole = np.asarray(np.isfinite(regrets.values[pair]).all(axis=(0, 3)))
    of_seed = np.asarray(whole.any(axis=0))
    of_task = np.asarray(whole[:, of_seed].all(axis=1) & of_seed.any())
    if not of_task.any():
        of_seed = np.zeros_like(of_seed)
    difference = (at[0] - at[1])[np.ix_(of_task, of_seed)]
    per_seed = difference.mean(axis=0) if difference.size else np.zeros(0)
    return PairedComparison(
        first,
        second,
        iteration,
        tuple(task for task, kept in zip(regrets.tasks, of_task, strict=True) if kept),
        tuple(label for label, kept in zip(regrets.seeds, of_seed, strict=True) if kept),
        tuple(task for task, kept in zip(regrets.tasks, of_task, strict=True) if not kept),
        tuple(label for label, kept in zip(regrets.seeds, of_seed, strict=True) if not kept),
        per_seed,
        float(per_seed.mean()) if per_seed.size else float("nan"),
        *bootstrap_interval(per_seed, seed),
        sign_flip_p_value(per_seed, seed),
        _tally(difference.mean(axis=1) if difference.size else np.zeros(0)),
        _tally(per_seed),
    )


def _tally(difference: Float64[np.ndarray, " n"]) -> Tally:
    return Tally(
        int((difference < -TIE_TOLERANCE).sum()),
        int((np.abs(difference) <= TIE_TOLERANCE).sum()),
        int((difference > TIE_TOLERANCE).sum()),
    )


def sign_flip_p_value(differences: ArrayLike, seed: int = 0) -> float:
    """Two-sided p-value of the sign-flip test that paired differences are symmetric about zero.

    There are 2^n ways to give signs to the differences. The p-value is the share of those whose sum is at
    least as far from zero as the sum of the original differences.

    Args:
      differences: one value per independent unit.
      seed: seed of the draws; for more than 20 values, 10,000 ways are drawn and the data are added as one.

    Returns:
      The p-value, at least 2 / 2^n; NaN without a value.

    Source: Fisher, "The Design of Experiments", 1935, section 21.

    >>> sign_flip_p_value([-1.0, -2.0, -1.5, -0.5, -3.0])
    0.0625
    """
    differences = np.asarray(differences, np.float64)
    if len(differences) == 0:
        return float("nan")
    # A sum that equals the observed one up to rounding is as far from zero.
    threshold = abs(float(differences.sum())) - 1e-12 * float(np.abs(differences).sum())
    if len(differences) > _MOST_EXACT_SEEDS:
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(_FLIPS_DRAWN, len(differences)))
        as_far = int((np.abs(signs @ differences) >= threshold).sum())
        return (as_far + 1) / (_FLIPS_DRAWN + 1)
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    return float((np.abs(sums) >= threshold).mean())
