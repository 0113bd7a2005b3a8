"""Simple regret, and the regret curves of an evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float64
from numpy.typing import ArrayLike

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.spread import Band, percentile_band
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.run_array import RunArray, arrange_records
from hyperbo.evaluation.records.runs import INITIAL_COLUMN, RANGE_COLUMN


def simple_regret(y: ArrayLike, y_max: ArrayLike) -> Float64[np.ndarray, "*runs iterations"]:
    """Simple regret r_t = y_max - max_{tau <= t} y_tau, Section 7.3 "Reporting Aggregated ...".

    Iterations are the last axis; an array `y_max` has there the length 1. Regret is NaN after the first
    missing observation.

    >>> simple_regret([0.5, 0.2, 1.0], [1.0])
    array([0.5, 0.5, 0. ])
    """
    return np.asarray(y_max, np.float64) - np.maximum.accumulate(np.asarray(y, np.float64), axis=-1)


def normalised_regret(
    y: ArrayLike, y_min: float | ArrayLike, y_max: float | ArrayLike
) -> Float64[np.ndarray, "*runs iterations"]:
    r"""Simple regret over the range of the task, Section 7.6 "Results on the HPO-B Benchmark".

    .. math:: (y_{max} - \max_{\tau \le t} y_\tau) / (y_{max} - y_{min})

    Args:
      y: observed values of shape (*runs, iterations), in the order of observation; NaN where one is missing.
      y_min: smallest value of the task: one number, or one per run, of shape (*runs,).
      y_max: largest value of the task, likewise.

    Returns:
      Normalised regret after each iteration, of the shape of y. It is 0 for a task without a range, and NaN
      after the first missing observation.

    Raises:
      InvalidInputError: a bound is not finite or has another shape, or a y is not between the bounds.

    >>> normalised_regret([[0.5, 0.2], [1.0, 3.0]], y_min=-1.0, y_max=[1.0, 3.0]).tolist()
    [[0.25, 0.25], [0.5, 0.0]]
    """
    values, low, high = (np.asarray(array, np.float64) for array in (y, y_min, y_max))
    runs = values.shape[:-1]
    if not values.ndim or low.shape not in ((), runs) or high.shape not in ((), runs):
        raise InvalidInputError(
            f"shapes {values.shape} of y, {low.shape} of y_min and {high.shape} of y_max",
            where="normalised_regret",
            fix="give y of shape (*runs, iterations), and as bounds one number or shape (*runs,)",
        )
    low, high = low[..., None], high[..., None]
    # The comparisons are false for a y that is missing.
    if (
        not np.isfinite(high - low).all()
        or (high < low).any()
        or (values < low).any()
        or (values > high).any()
    ):
        raise InvalidInputError(
            "a y is not between y_min and y_max, or one of these is not finite", where="normalised_regret"
        )
    return _over_range(simple_regret(values, high), high - low)


def _over_range(
    regret: Float64[np.ndarray, "*runs iterations"], extent: Float64[np.ndarray, "*#runs 1"]
) -> Float64[np.ndarray, "*runs iterations"]:
    # A task without a range has regret 0 already.
    return np.divide(regret, extent, out=regret.copy(), where=extent != 0.0)


def simple_regrets(records: pd.DataFrame, metadata: EvaluationMetadata) -> RunArray:
    """Simple regret of every run, normalised if the metadata say so; NaN for a missing record.

    The best trial that a run was given counts from its first iteration on. Normalised regret is divided by
    the range of the task, Section 7.6 "Results on the HPO-B Benchmark"; a task without a range has regret 0.

    Raises:
      InvalidInputError: the records are invalid, belong to another evaluation, or lack the `y_min` that
        normalised regret needs.
    """
    observed = arrange_records(records, "y", metadata)
    values = observed.values
    if INITIAL_COLUMN in records.columns:
        # fmax ignores the NaN of a run without given trials; a missing y stays missing.
        initial = arrange_records(records, INITIAL_COLUMN, metadata).values
        values = np.where(np.isnan(values), np.nan, np.fmax(values, initial))
    y_max = _of_tasks(records, "y_max", observed)
    regret = simple_regret(values, y_max)
    if metadata.get("regret") == "normalised":
        if RANGE_COLUMN not in records.columns:
            raise InvalidInputError(
                f"no column {RANGE_COLUMN}, which normalised regret needs", where="run records"
            )
        regret = _over_range(regret, y_max - _of_tasks(records, RANGE_COLUMN, observed))
    return RunArray(observed.methods, observed.tasks, observed.seeds, regret)


def _of_tasks(records: pd.DataFrame, column: str, observed: RunArray) -> Float64[np.ndarray, "1 tasks 1 1"]:
    """The value of a column for each task; NaN for a task without a record."""
    values = records.groupby("task")[column].first().reindex(list(observed.tasks))
    return values.to_numpy(np.float64)[None, :, None, None]


def regrets_of_priors(regrets: RunArray, metadata: EvaluationMetadata) -> RunArray:
    """Regrets by prior instead of run: the mean over the runs that share a prior, NaN if one is missing.

    Runs that share a prior, as the initialisations of HPO-B do, are not independent of each other.
    Comparisons of methods must count priors, not runs. How many runs share one is in the metadata.
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
    """Median and 20/80 percentile over seeds of the mean regret over tasks, of shape (methods, iterations).

    Raises:
      InvalidInputError: a run is missing.
    """
    return percentile_band(mean_over_tasks(regrets), axis=1)


def task_regret_curves(regrets: RunArray) -> Band:
    """Bands of shape (methods, tasks, iterations): median and 20/80 percentile over seeds.

    NaN for a method that lacks a run on the task or a part of it.
    """
    whole = np.where(regrets.complete[:, :, None, None], regrets.values, np.nan)
    return percentile_band(whole, axis=2)
