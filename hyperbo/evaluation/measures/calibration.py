"""Calibration: how well a method's predictive distribution agrees with the observations.

A record's prediction is that of the chosen candidate, before its y was observed. Chosen candidates are not a
random sample: the acquisition function chose them because the prediction was high or wide. So a model that is
right on average over the search space is too optimistic at them. A candidate that is observed again is left
out: the model has already seen its y.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.spread import standard_deviation
from hyperbo.evaluation.records.runs import PREDICTION_COLUMNS, RUN, has_predictions

LEVELS = (0.5, 0.8, 0.95)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CURVE_LEVELS = tuple(level / 20 for level in range(1, 20))


@dataclass(frozen=True)
class Calibration:
    """Agreement of a method's predictions with the observations, over all tasks.

    Attributes:
      method: the method.
      predictions: number of first observations of a candidate that have a prediction.
      repeats: number of observations left out because the run had observed the candidate before.
      coverage: share of observations within the central interval of each of `LEVELS`, mean over seeds.
      coverage_std: its standard deviation over seeds; NaN for a single seed.
      curve: share of observations within the central interval of each of `CURVE_LEVELS`, mean over seeds.
      residual_mean: mean of the standardised residuals (y - mean) / deviation; 0 if calibrated.
      residual_std: their standard deviation; 1 if calibrated.
      residual_quantiles: their quantiles at `QUANTILES`; those of the standard normal if calibrated.
      negative_log_density: mean of -ln N(y; mean, deviation^2); lower is better.
    """

    method: str
    predictions: int
    repeats: int
    coverage: Float64[np.ndarray, " levels"]
    coverage_std: Float64[np.ndarray, " levels"]
    curve: Float64[np.ndarray, " curve_levels"]
    residual_mean: float
    residual_std: float
    residual_quantiles: Float64[np.ndarray, " quantiles"]
    negative_log_density: float


def standard_normal_quantiles(shares: tuple[float, ...]) -> Float64[np.ndarray, " shares"]:
    """Quantiles of the standard normal distribution.

    >>> standard_normal_quantiles((0.5, 0.975)).round(2).tolist()
    [0.0, 1.96]
    """
    return np.array([NormalDist().inv_cdf(share) for share in shares])


def coverage(
    residuals: Float64[np.ndarray, " n"], levels: tuple[float, ...]
) -> Float64[np.ndarray, " levels"]:
    """Share of standardised residuals within the central interval of the standard normal of each level.

    >>> coverage(np.array([-3.0, -0.1, 0.2, 1.0]), (0.5, 0.8, 0.95)).tolist()
    [0.5, 0.75, 0.75]
    """
    half_width = standard_normal_quantiles(tuple((1 + level) / 2 for level in levels))
    return (np.abs(residuals) <= half_width[:, None]).mean(axis=1)


def measure_calibration(records: pd.DataFrame, method: str, runs_per_prior: int = 1) -> Calibration | None:
    """Calibration of a method's predictions; None if it has none.

    Args:
      records: valid run records.
      method: the method.
      runs_per_prior: number of runs on a task that share a prior, from the metadata; they count as one seed.

    Raises:
      InvalidInputError: the method has no record.
    """
    own = records[records["method"] == method]
    if own.empty:
        raise InvalidInputError(f"no record of the method {method!r}", where="run records")
    if not has_predictions(records):
        return None
    own = own.sort_values([*RUN, "iteration"])
    predicted = own["mean"].notna()
    repeated = own.duplicated([*RUN, "trial_id"])
    kept = own[predicted & ~repeated]
    if kept.empty:
        return None
    y, (mean, deviation) = kept["y"].to_numpy(), (kept[column].to_numpy() for column in PREDICTION_COLUMNS)
    residuals = (y - mean) / deviation
    of_prior = kept["seed"].to_numpy() // runs_per_prior
    by_seed = [residuals[of_prior == prior] for prior in np.unique(of_prior)]
    levels = np.array([coverage(each, LEVELS) for each in by_seed])
    return Calibration(
        method=method,
        predictions=len(kept),
        repeats=int((predicted & repeated).sum()),
        coverage=levels.mean(axis=0),
        coverage_std=standard_deviation(levels, axis=0),
        curve=np.mean([coverage(each, CURVE_LEVELS) for each in by_seed], axis=0),
        residual_mean=float(residuals.mean()),
        residual_std=float(np.std(residuals, ddof=1)) if len(kept) > 1 else float("nan"),
        residual_quantiles=np.quantile(residuals, QUANTILES),
        negative_log_density=float(np.mean(0.5 * residuals**2 + np.log(deviation) + 0.5 * np.log(2 * np.pi))),
    )
