"""Spread over seeds: percentile bands, standard deviations, bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

LOWER_PERCENTILE, UPPER_PERCENTILE = 20, 80
BOOTSTRAP_SAMPLES = 10_000
# Means of equal values, summed in another order, differ by no more than this share.
ROUNDING = 1e-13
BOOTSTRAP_COVERAGE = 0.95


@dataclass(frozen=True)
class Band:
    """Median with the 20th and 80th percentile, linearly interpolated between order statistics."""

    median: Float64[np.ndarray, "*shape"]
    lower: Float64[np.ndarray, "*shape"]
    upper: Float64[np.ndarray, "*shape"]


def percentile_band(values: Float64[np.ndarray, ...], axis: int) -> Band:
    """Median and 20/80 percentile along an axis, Section 7.3 "Reporting Aggregated Multi-task Results".

    >>> band = percentile_band(np.array([[4.0, 0.0, 2.0, 3.0, 1.0]]), axis=1)
    >>> float(band.lower[0]), float(band.median[0]), float(band.upper[0])
    (0.8, 2.0, 3.2)
    """
    levels = np.percentile(values, (50, LOWER_PERCENTILE, UPPER_PERCENTILE), axis=axis)
    return Band(*levels)


def standard_deviation(values: Float64[np.ndarray, ...], axis: int) -> Float64[np.ndarray, ...]:
    """Standard deviation of a sample (divided by n - 1); NaN for fewer than two values."""
    if values.shape[axis] < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.std(values, axis=axis, ddof=1)


def bootstrap_interval(values: ArrayLike, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean: 95 %, from 10,000 resamples of independent units, as seeds.

    The same seed gives the same interval. Both ends are NaN for fewer than two values.
    """
    lower, upper = bootstrap_intervals(np.asarray(values, np.float64)[:, None], seed)
    return float(lower[0]), float(upper[0])


def bootstrap_intervals(
    values: Float64[np.ndarray, "n k"], seed: int = 0
) -> tuple[Float64[np.ndarray, " k"], Float64[np.ndarray, " k"]]:
    """The `bootstrap_interval` of the mean of every column: the same resamples of rows for all of them."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    return interval_of(resampled_means(values, seed))


def resampled_means(values: Float64[np.ndarray, "n k"], seed: int = 0) -> Float64[np.ndarray, "resamples k"]:
    """The means over rows of 10,000 resamples of the rows."""
    rows = np.random.default_rng(seed).integers(len(values), size=(BOOTSTRAP_SAMPLES, len(values)))
    return np.stack([column[rows].mean(axis=1) for column in values.T], axis=1)


def interval_of(
    resamples: Float64[np.ndarray, "resamples k"],
) -> tuple[Float64[np.ndarray, " k"], Float64[np.ndarray, " k"]]:
    """The ends of the 95 % percentile interval of every column of resamples."""
    tail = (1 - BOOTSTRAP_COVERAGE) / 2
    lower, upper = np.quantile(resamples, (tail, 1 - tail), axis=0)
    return lower, upper
