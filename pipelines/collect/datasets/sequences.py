"""Sequences of numbers: images read row by row."""

from __future__ import annotations

import numpy as np

from pipelines.collect.datasets.dataset import TaskDataset, shuffled_splits, standardize
from pipelines.collect.datasets.libraries import scikit_image_data, scikit_learn_datasets

ROW, ROW_DISTANCE = 16, 8  # pixels; neighbouring rows look alike, so not every one is taken


def digit_rows() -> TaskDataset:
    """Handwritten digits as sequences of 8 rows of 8 pixels, 10 classes."""
    bunch = scikit_learn_datasets().load_digits()
    splits = shuffled_splits(np.asarray(bunch.images, np.float64), bunch.target, train=300, valid=1000)
    return TaskDataset("digits", "sequence", 10, *standardize(splits, axis=None), view="rows")


def texture_rows() -> TaskDataset:
    """Rows of 16 pixels from grey photographs of brick, grass and gravel: which of the three."""
    data = scikit_image_data()
    cut = [
        np.asarray(image(), np.float64)[::ROW_DISTANCE].reshape(-1, ROW)
        for image in (data.brick, data.grass, data.gravel)
    ]
    inputs = np.concatenate(cut)[..., None]
    labels = np.repeat(np.arange(len(cut)), [len(rows) for rows in cut])
    splits = shuffled_splits(inputs, labels, train=400, valid=800, test=400)
    return TaskDataset("textures", "sequence", 3, *standardize(splits, axis=None), view="rows")
