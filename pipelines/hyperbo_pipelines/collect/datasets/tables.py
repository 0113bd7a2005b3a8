"""Tables of measurements; each row has a class."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperbo_pipelines.collect.datasets.dataset import (
    TaskDataset,
    library_module,
    shuffled_splits,
    standardize,
)


def breast_cancer() -> TaskDataset:
    """Breast cancer diagnosis, 2 classes; from the 10 mean measurements: all 30 make it too easy."""
    bunch = library_module("sklearn.datasets").load_breast_cancer()
    splits = shuffled_splits(bunch.data[:, :10], bunch.target, train=120, valid=400)
    return TaskDataset("breast_cancer", "table", 2, *standardize(splits, axis=0))


def diabetes() -> TaskDataset:
    """Disease progression from 10 measurements; its quartiles as 4 classes."""
    bunch = library_module("sklearn.datasets").load_diabetes()
    quartiles = np.quantile(bunch.target, [0.25, 0.5, 0.75])
    splits = shuffled_splits(bunch.data, np.searchsorted(quartiles, bunch.target), train=120, valid=250)
    return TaskDataset("diabetes", "table", 4, *standardize(splits, axis=0))


def image_segments() -> TaskDataset:
    """What a region of an outdoor photograph shows, 7 classes, from 18 statistics of its pixels."""
    inputs, labels = _table(library_module("river.datasets").ImageSegments())
    splits = shuffled_splits(inputs, labels, train=250, valid=1400)
    return TaskDataset("image_segments", "table", 7, *standardize(splits, axis=0))


def phishing() -> TaskDataset:
    """Whether a web page is a phishing page, from 9 features."""
    inputs, labels = _table(library_module("river.datasets").Phishing())
    splits = shuffled_splits(inputs, labels, train=150, valid=400)
    return TaskDataset("phishing", "table", 2, *standardize(splits, axis=0))


def _table(stream: Any) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of a stream as arrays; classes are numbered in sorted order."""
    rows: dict[tuple[float, ...], Any] = {}
    for features, label in stream:
        rows.setdefault(tuple(features.values()), label)
    _, labels = np.unique(list(rows.values()), return_inverse=True)
    return np.array(list(rows), np.float64), labels
