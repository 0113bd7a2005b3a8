"""Simple regret, and the regret curves of an evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.run_array import RunArray, run_array
from hyperbo.evaluation.spread import Band, percentile_band


def simple_regret(
    y: Float64[np.ndarray, "*runs iterations"], y_max: Float64[np.ndarray, "*#runs 1"]
) -> Float64[np.ndarray, "*runs iterations"]:
    """Simple regret r_t = y_max - max_{tau <= t} y_tau, section "Reporting Aggregated Multi-task Results".

    Args:
      y: observed values, in the order of observation, along the last axis.
      y_max: largest value that could be observed, for each run.

    Returns:
      Regret after each iteration; NaN from the first missing observation on.

    >>> simple_regret(np.array([0.5, 0.2, 1.0]), np.array([1.0]))
    array([0.5, 0.5, 0. ])
    """
    return y_max - np.maximum.accumulate(y, axis=-1)


def simple_regrets(records: pd.DataFrame, metadata: EvaluationMetadata) -> RunArray:
    """Simple regret of every run of an evaluation.

    Args:
      records: run records.
      metadata: what the evaluation asked for.

    Returns:
      Regret by method, task, seed and iteration; NaN where a run is missing.

    Raises:
      InvalidInputError: the records are invalid, or not of this evaluation.
    """
    observed = run_array(records, "y", metadata)
    # A task without a record has no y_max, and no regret.
    y_max = records.groupby("task")["y_max"].first().reindex(list(observed.tasks)).to_numpy(np.float64)
    regret = simple_regret(observed.values, y_max[None, :, None, None])
    return RunArray(observed.methods, observed.tasks, observed.seeds, regret)


def mean_over_tasks(regrets: RunArray) -> Float64[np.ndarray, "methods seeds iterations"]:
    """Mean regret over test tasks, (1/P) sum_p r_t^(p,q), for each method and seed.

    Raises:
      InvalidInputError: a run is missing.
    """
    return regrets.require_complete().mean(axis=1)


def regret_curves(regrets: RunArray) -> Band:
    """Regret curves: median and 20/80 percentile over seeds of the mean regret over tasks.

    Returns:
      Bands of shape (methods, iterations).

    Raises:
      InvalidInputError: a run is missing.
    """
    return percentile_band(mean_over_tasks(regrets), axis=1)


def task_regret_curves(regrets: RunArray) -> Band:
    """Regret curves of each task: median and 20/80 percentile over seeds.

    Returns:
      Bands of shape (methods, tasks, iterations); NaN for an arm that lacks a seed, even in part.
    """
    whole = np.where(regrets.complete[:, :, None, None], regrets.values, np.nan)
    return percentile_band(whole, axis=2)
