"""Images that TFDS downloads: PD1's own small ones, for whoever has the network and the time."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.collect.datasets.dataset import Split, TaskDataset, shuffled_splits, standardize

NAMES = ("mnist", "fashion_mnist", "cifar10", "svhn_cropped")
TRAIN, VALID, TEST = 2000, 5000, 5000


def images(name: str) -> TaskDataset:
    """Part of an image dataset of TFDS, downloaded into TFDS's own folder where it is not there yet.

    Training and validation examples come from its training split, test examples from its test split.
    """
    import tensorflow_datasets as tfds

    builder: Any = tfds.builder(name, file_format="array_record")
    builder.download_and_prepare()
    classes = builder.info.features["label"].num_classes
    train, valid, _ = _read(builder.as_data_source("train"), TRAIN, VALID)
    test, _, _ = _read(builder.as_data_source("test"), TEST, 0)
    return TaskDataset(name, "image", classes, *standardize((train, valid, test), axis=None))


def _read(source: Any, first: int, second: int) -> tuple[Split, Split, Split]:
    # Of a source that is short, as mocked ones are, each split gets its share.
    share = min(1.0, len(source) / (first + second))
    first, second = int(first * share), int(second * share)
    order = np.random.default_rng(0).permutation(len(source))[: first + second]
    examples = [source[int(i)] for i in order]
    inputs = np.stack([np.asarray(each["image"], np.float64) / 255 for each in examples])
    labels = np.array([each["label"] for each in examples])
    return shuffled_splits(inputs, labels, first, second, 0)
