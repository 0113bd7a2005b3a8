"""Simple regret, and the regret curves of an evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.records import INITIAL_COLUMN, RANGE_COLUMN
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
    """Simple regret of every run of an evaluation, as its metadata asks for it.

    The best of the trials that a run was given counts from its first iteration on. Where the metadata's
    `regret` is `normalised`, it is divided by the range of the task, section "Results on the HPO-B Offline
    Hyperparameter Tuning Tasks"; a task without a range has regret 0.

    Args:
      records: run records.
      metadata: what the evaluation asked for.

    Returns:
      Regret by method, task, seed and iteration; NaN where a run is missing.

    Raises:
      InvalidInputError: the records are invalid, not of this evaluation, or lack `y_min` though it is needed.
    """
    observed = run_array(records, "y", metadata)
    values = observed.values
    if INITIAL_COLUMN in records.columns:
        # NaN, of a run that was given nothing, loses against any y; a missing y stays missing.
        initial = run_array(records, INITIAL_COLUMN, metadata).values
        values = np.where(np.isnan(values), np.nan, np.fmax(values, initial))
    y_max = _of_tasks(records, "y_max", observed)
    regret = simple_regret(values, y_max)
    if metadata.get("regret") == "normalised":
        if RANGE_COLUMN not in records.columns:
            raise InvalidInputError(
                f"no column {RANGE_COLUMN}, which normalised regret needs", where="run records"
            )
        extent = y_max - _of_tasks(records, RANGE_COLUMN, observed)
        regret = np.divide(regret, extent, out=regret.copy(), where=extent != 0.0)
    return RunArray(observed.methods, observed.tasks, observed.seeds, regret)


def _of_tasks(records: pd.DataFrame, column: str, observed: RunArray) -> Float64[np.ndarray, "1 tasks 1 1"]:
    """What the records say of each task; NaN for a task without a record."""
    values = records.groupby("task")[column].first().reindex(list(observed.tasks))
    return values.to_numpy(np.float64)[None, :, None, None]


def regrets_of_priors(regrets: RunArray, metadata: EvaluationMetadata) -> RunArray:
    """Regrets with the prior as the unit: the mean over the runs that share one.

    Runs of one prior, as HPO-B has one per initialisation, are not independent of each other; who compares
    methods must not count them as if they were.

    Args:
      regrets: of every run.
      metadata: says how many runs share a prior.

    Returns:
      The means, one seed per prior; NaN where one of its runs is missing.
    """
    runs = metadata.get("runs_per_prior", 1)
    priors = sorted({seed // runs for seed in regrets.seeds})
    columns = [[k for k, seed in enumerate(regrets.seeds) if seed // runs == prior] for prior in priors]
    values = np.stack([regrets.values[:, :, own].mean(axis=2) for own in columns], axis=2)
    return RunArray(regrets.methods, regrets.tasks, tuple(priors), values)


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
