"""Ranks of methods by regret: mean over tasks, and on each task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.regret import mean_over_tasks
from hyperbo.evaluation.run_array import RunArray
from hyperbo.evaluation.spread import standard_deviation


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
    """Rank methods from low to high mean regret over tasks, seed by seed; ties share their average rank.

    Section "Reporting Aggregated Multi-task Results", "Ranking plots".

    Raises:
      InvalidInputError: a run is missing.
    """
    means = mean_over_tasks(regrets)
    flat = pd.DataFrame(means.reshape(len(means), -1))
    per_seed = flat.rank(axis=0, method="average").to_numpy(np.float64).reshape(means.shape)
    return Ranks(per_seed, per_seed.mean(axis=1), standard_deviation(per_seed, axis=1))


def task_ranks(regrets: RunArray, iteration: int) -> Float64[np.ndarray, "methods tasks"]:
    """Rank methods by regret on each task, seed by seed; mean over seeds, ties sharing their average rank.

    Args:
      regrets: regrets as run, missing runs included.
      iteration: after which to rank, counted from 1.

    Returns:
      Mean ranks; NaN for an arm that lacks a seed, which is not ranked, so that the rest move up.

    Raises:
      InvalidInputError: there is no such iteration.
    """
    at = np.where(regrets.complete[..., None], regrets.at(iteration), np.nan)
    ranks = pd.DataFrame(at.reshape(len(at), -1)).rank(axis=0, method="average").to_numpy(np.float64)
    return ranks.reshape(at.shape).mean(axis=2)
