r"""Means with intervals over clusters: priors that are tested on one task dataset are not independent.

A value is that of one prior in one cluster. Of G clusters, cluster c has the mean :math:`m_c` of its values.
The estimate is their mean, and the 95 % interval is Student's over clusters,

.. math:: m = \frac{1}{G} \sum_c m_c, \quad s^2 = \frac{1}{G - 1} \sum_c (m_c - m)^2, \quad
   m \pm t_{0.975, G - 1} \frac{s}{\sqrt G}.

Priors within a cluster enter by its mean only: two priors on one task dataset do not count as two task
datasets. It is the interval of Ibragimov and Müller, "t-statistic based correlation and heterogeneity robust
inference", Journal of Business & Economic Statistics 28(4), 2010. A percentile bootstrap of so few clusters
is too narrow. Where values are skewed, as regrets
near 0 are, the interval covers less than it says. It is not corrected for the number of comparisons.
"""

# What was measured of both is in docs/decisions/arena.md.

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64
from scipy.stats import t as student

COVERAGE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over clusters, and its interval; both ends are NaN for fewer than two clusters."""

    mean: float
    lower: float
    upper: float


def cluster_means(values: pd.Series, clusters: pd.Series) -> Float64[np.ndarray, " clusters"]:
    """The mean of the values in each cluster, in the order of the clusters' names."""
    return values.groupby(clusters).mean().sort_index().to_numpy(np.float64)


def estimate(means: Float64[np.ndarray, " clusters"]) -> Estimate:
    """The mean of the clusters' means, with its interval.

    >>> found = estimate(np.array([0.1, 0.2, 0.3]))
    >>> round(found.mean, 6), round(found.lower, 4), round(found.upper, 4)
    (0.2, -0.0484, 0.4484)
    """
    count = len(means)
    mean = float(np.mean(means)) if count else math.nan
    if count < 2:
        return Estimate(mean, math.nan, math.nan)
    half = float(student.ppf((1 + COVERAGE) / 2, count - 1) * np.std(means, ddof=1) / math.sqrt(count))
    return Estimate(mean, mean - half, mean + half)
