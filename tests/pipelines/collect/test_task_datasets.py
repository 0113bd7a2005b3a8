"""Task datasets: real, split without overlap, of a fixed content, and fit for an objective in logarithms."""

import numpy as np
import pytest

from hyperbo.errors import InvalidInputError
from pipelines.collect.tasks import TASK_DATASETS, load_task_dataset

SIZES = {
    "digits": (300, 1000, 497),
    "breast_cancer": (120, 400, 49),
    "diabetes": (120, 250, 72),
    "sample_patches": (500, 1000, 580),
    "sklearn_text": (700, 300, 100),
}


@pytest.mark.parametrize("name", TASK_DATASETS)
def test_splits_share_no_example_and_hold_every_class(name):
    dataset = load_task_dataset(name)
    splits = (dataset.train, dataset.valid, dataset.test)
    assert tuple(len(split) for split in splits) == SIZES[name]
    for split in splits[:2]:
        assert split.labels.min() >= 0
        assert split.labels.max() < dataset.classes
        assert len(split.inputs) == len(split.labels)
    if dataset.kind != "text":  # the alphabet has letters that occur once
        assert set(np.unique(dataset.train.labels)) == set(range(dataset.classes))
        assert set(np.unique(dataset.valid.labels)) == set(range(dataset.classes))
    keys = [{row.tobytes() for row in split.inputs} for split in splits]
    repeated = sum(len(keys[i] & keys[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    # White corners of the photographs and rules of dashes in the text look alike wherever they are.
    assert repeated <= 0.01 * sum(SIZES[name])


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "diabetes", "sample_patches"])
def test_inputs_are_standardised_by_the_training_split(name):
    dataset = load_task_dataset(name)
    assert dataset.train.inputs.dtype == np.float32
    axis = 0 if dataset.kind == "table" else None
    np.testing.assert_allclose(dataset.train.inputs.mean(axis=axis, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(dataset.train.inputs.std(axis=axis, dtype=np.float64), 1, rtol=1e-5)


def test_text_labels_are_the_next_characters():
    dataset = load_task_dataset("sklearn_text")
    np.testing.assert_array_equal(dataset.train.labels[:, :-1], dataset.train.inputs[:, 1:])


def test_diabetes_classes_are_quartiles():
    dataset = load_task_dataset("diabetes")
    labels = np.concatenate([split.labels for split in (dataset.train, dataset.valid, dataset.test)])
    counts = np.bincount(labels)
    assert counts.min() >= 0.24 * len(labels)


@pytest.mark.parametrize("name", TASK_DATASETS)
def test_a_task_dataset_is_the_same_each_time(name):
    assert load_task_dataset(name).sha256 == load_task_dataset(name).sha256


def test_an_unknown_task_dataset_is_refused():
    with pytest.raises(InvalidInputError, match="unknown task dataset 'imagenet'; use one of digits"):
        load_task_dataset("imagenet")
