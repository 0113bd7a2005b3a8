"""Intervals over clusters, against a plain loop, and by simulation of their coverage."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ttest_1samp

from hyperbo.evaluation.measures.clusters import cluster_means, estimate


def test_the_mean_of_a_cluster_is_that_of_a_plain_loop():
    values, clusters = [0.5, 0.25, 1.0, 3.0, 2.0], ["b", "a", "b", "a", "c"]
    expected = []
    for name in ("a", "b", "c"):
        own = [value for value, cluster in zip(values, clusters, strict=True) if cluster == name]
        expected.append(sum(own) / len(own))
    assert cluster_means(pd.Series(values), pd.Series(clusters)).tolist() == expected


@given(arrays(np.float64, st.integers(2, 9), elements=st.floats(-10, 10)))
def test_the_interval_is_students(means):
    found = estimate(means)
    if np.ptp(means) > 1e-6:
        low, high = ttest_1samp(means, 0.0).confidence_interval(0.95)
        np.testing.assert_allclose((found.lower, found.upper), (low, high), rtol=1e-9, atol=1e-9)
    assert math.isclose(found.mean, sum(means) / len(means), abs_tol=1e-12)


def test_one_cluster_gives_no_interval():
    found = estimate(np.array([0.5]))
    assert (found.mean, math.isnan(found.lower), math.isnan(found.upper)) == (0.5, True, True)


def test_the_interval_covers_as_often_as_it_says_where_priors_share_clusters():
    random = np.random.default_rng(3)
    clusters = pd.Series(np.repeat(np.arange(7), 3))
    covered = by_prior = 0
    for _ in range(600):
        shared = random.normal(size=7)
        values = pd.Series(np.repeat(shared, 3) + 0.5 * random.normal(size=21))
        found = estimate(cluster_means(values, clusters))
        covered += found.lower <= 0.0 <= found.upper
        # As if priors were independent of each other.
        naive = estimate(values.to_numpy())
        by_prior += naive.lower <= 0.0 <= naive.upper
    assert 0.93 < covered / 600 < 0.97
    assert by_prior / 600 < 0.85
