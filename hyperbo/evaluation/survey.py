"""Whether tuning data is a good benchmark: how its tasks differ, how hard they are, what priors gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.regret import simple_regrets
from hyperbo.tuning_data import TuningData

RANDOM_SEARCH_AT = (10, 50, 100)
GAIN_AT = (10, 50)
# Fewer inputs in common say nothing about the order of two tasks.
_FEWEST_COMMON = 10


def expected_regret(y: Float64[np.ndarray, " n"], draws: int) -> float:
    """Expected simple regret of random search among finitely many candidates, with replacement, exactly.

        E[max y - best of t] = sum_k (y_(n) - y_(k)) ((k / n)^t - ((k - 1) / n)^t),  y_(1) <= ... <= y_(n)

    Args:
      y: value of every candidate.
      draws: t.

    >>> expected_regret(np.array([0.0, 1.0]), draws=1)
    0.5
    """
    ordered = np.sort(y)
    below = (np.arange(len(y) + 1) / len(y)) ** draws
    return float(np.sum((ordered[-1] - ordered) * np.diff(below)))


def chance_of_best(y: Float64[np.ndarray, " n"], draws: int) -> float:
    """Probability that random search with replacement finds a best candidate.

    >>> chance_of_best(np.array([0.0, 1.0]), draws=2)
    0.75
    """
    return float(1 - (1 - np.mean(y == y.max())) ** draws)


def survey_tasks(trials: pd.DataFrame, data: TuningData) -> pd.DataFrame:
    """Describe every task: its trials, divergence, the spread of y, and how hard it is for random search.

    Args:
      trials: every record as stored; the columns `task`, `split`, `diverged`.
      data: the same version as it is learned from.

    Returns:
      A row per task, indexed by its name: numbers of trials `matched` and `unmatched`, the share `diverged`,
      `best`, `median` and `worst` objective of what did not diverge, the standard deviation `spread` and the
      range of its y, expected regret of random search `rand_<t>` after t draws, and `chance_10`, with which
      ten draws find the best.

    Raises:
      InvalidInputError: the trials lack a task.
    """
    rows = {}
    for task in data.tasks:
        own = trials[trials["task"] == task.name]
        if own.empty:
            raise InvalidInputError(f"no trial of task {task.name!r}", where="survey")
        splits = own["split"].value_counts()
        # The best objective is the one of the largest y, whichever its direction is.
        order = np.argsort(task.y)
        rows[task.name] = {
            "matched": int(splits.get("matched", 0)),
            "unmatched": int(splits.get("unmatched", 0)),
            "diverged": float(own["diverged"].mean()),
            "best": float(task.objective[order[-1]]),
            "median": float(np.median(task.objective)),
            "worst": float(task.objective[order[0]]),
            "spread": float(task.y.std()),
            "range": float(np.ptp(task.y)),
            **{f"rand_{draws}": expected_regret(task.y, draws) for draws in RANDOM_SEARCH_AT},
            "chance_10": chance_of_best(task.y, 10),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def rank_correlations(data: TuningData) -> pd.DataFrame:
    """Spearman's correlation of y between every two tasks, over the matched inputs that both have y for.

    NaN where they share fewer than 10. Ties, which counted errors have, share their average rank.

    Returns:
      Tasks by tasks, in the order of the data.
    """
    names = [task.name for task in data.tasks]
    blocks = [pd.DataFrame(block.y, columns=list(block.tasks)) for block in data.blocks]
    values = pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame()
    return values.reindex(columns=names).corr(method="spearman", min_periods=_FEWEST_COMMON)


def gains(
    records: pd.DataFrame,
    metadata: EvaluationMetadata,
    method: str,
    baseline: str,
    at: Sequence[int] = GAIN_AT,
) -> pd.DataFrame:
    """By how much a method's regret is below a baseline's, by task: mean over seeds.

    Args:
      records: of an evaluation.
      metadata: of the same.
      method: for example `H-NLL`.
      baseline: for example `STBO`.
      at: iterations.

    Returns:
      A row per tested task, with the columns `gain_<iteration>`; NaN where a run is missing.

    Raises:
      InvalidInputError: the evaluation has no such method or no such iteration.
    """
    regrets = simple_regrets(records, metadata)
    ours, theirs = (regrets.method_index(name) for name in (method, baseline))
    found = {}
    for iteration in at:
        values = regrets.at(iteration)
        found[f"gain_{iteration}"] = (values[theirs] - values[ours]).mean(axis=1)
    return pd.DataFrame(found, index=list(regrets.tasks))
