"""Task datasets: real, split without overlap, of a fixed content, and fit for an objective in logarithms."""

import sys

import numpy as np
import pytest
from hyperbo_pipelines.collect.datasets import TASK_DATASETS, load_task_dataset
from hyperbo_pipelines.collect.datasets.images import DOWNLOADED

from hyperbo.errors import InvalidInputError, NotAvailableError

SIZES = {
    "digits": (300, 1000, 497),
    "digits_4x4": (300, 1000, 497),
    "digits_16x16": (300, 1000, 497),
    "digit_rows": (300, 1000, 497),
    "breast_cancer": (120, 400, 49),
    "diabetes": (120, 250, 72),
    "image_segments": (250, 1400, 436),
    "phishing": (150, 400, 75),
    "sample_patches": (500, 1000, 580),
    "textures": (400, 800, 400),
    "texture_rows": (400, 800, 400),
    "characters": (700, 300, 100),
    "words": (500, 500, 90),
    "pages": (200, 350, 63),
}


def test_every_task_dataset_that_ships_is_listed_here():
    assert set(SIZES) == set(TASK_DATASETS) - set(DOWNLOADED)


@pytest.mark.parametrize("name", SIZES)
def test_splits_share_no_example_and_hold_every_class(name):
    dataset = load_task_dataset(name)
    splits = (dataset.train, dataset.valid, dataset.test)
    assert tuple(len(split) for split in splits) == SIZES[name]
    for split in splits[:2]:
        assert split.labels.min() >= 0
        assert split.labels.max() < dataset.classes
        assert len(split.inputs) == len(split.labels)
    if dataset.train.labels.ndim == 1:  # an alphabet has letters that occur once
        assert set(np.unique(dataset.train.labels)) == set(range(dataset.classes))
        assert set(np.unique(dataset.valid.labels)) == set(range(dataset.classes))
    keys = [{row.tobytes() for row in split.inputs} for split in splits]
    repeated = sum(len(keys[i] & keys[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    # White corners of the photographs and rules of dashes in the text look alike wherever they are.
    assert repeated <= 0.02 * sum(SIZES[name])


@pytest.mark.parametrize("name", [name for name in SIZES if name not in ("characters", "words", "pages")])
def test_inputs_are_standardised_by_the_training_split(name):
    dataset = load_task_dataset(name)
    assert dataset.train.inputs.dtype == np.float32
    axis = 0 if dataset.kind == "table" else None
    np.testing.assert_allclose(dataset.train.inputs.mean(axis=axis, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(dataset.train.inputs.std(axis=axis, dtype=np.float64), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["characters", "words"])
def test_text_labels_are_the_next_tokens(name):
    dataset = load_task_dataset(name)
    assert dataset.train.inputs.max() < dataset.vocabulary
    np.testing.assert_array_equal(dataset.train.labels[:, :-1], dataset.train.inputs[:, 1:])


def test_diabetes_classes_are_quartiles():
    dataset = load_task_dataset("diabetes")
    labels = np.concatenate([split.labels for split in (dataset.train, dataset.valid, dataset.test)])
    counts = np.bincount(labels)
    assert counts.min() >= 0.24 * len(labels)


def test_small_digits_are_means_of_squares_and_large_ones_keep_the_classes():
    whole, small, large = (load_task_dataset(name) for name in ("digits", "digits_4x4", "digits_16x16"))
    np.testing.assert_array_equal(small.train.labels, whole.train.labels)
    squares = whole.train.inputs.reshape(-1, 4, 2, 4, 2, 1).mean(axis=(2, 4))
    correlation = np.corrcoef(small.train.inputs.ravel(), squares.ravel())[0, 1]
    assert correlation == pytest.approx(1.0, abs=1e-6)
    assert large.train.inputs.shape[1:] == (16, 16, 1)
    assert {whole.name, small.name, large.name} == {"digits"}, "tasks on them are held out together"
    assert len({whole.view, small.view, large.view}) == 3


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(NotAvailableError, match=r"no module river; pip install .hyperbo-priors\[collect\]"):
        load_task_dataset("phishing")


@pytest.mark.parametrize("name", DOWNLOADED)
def test_images_of_tfds_are_read_through_tfds(name):
    """With TFDS's own mocked data: random images in the shapes of the real ones."""
    import tensorflow_datasets as tfds

    with tfds.testing.mock_data(num_examples=60):
        dataset = load_task_dataset(name)
    assert (dataset.name, dataset.kind, dataset.classes) == (name, "image", 10)
    assert len(dataset.train) < len(dataset.valid)
    assert len(dataset.train) + len(dataset.valid) <= 60
    assert dataset.train.inputs.shape[1:] == dataset.test.inputs.shape[1:]
    np.testing.assert_allclose(dataset.train.inputs.mean(dtype=np.float64), 0, atol=1e-5)


@pytest.mark.parametrize("name", SIZES)
def test_a_task_dataset_is_the_same_each_time(name):
    assert load_task_dataset(name).sha256 == load_task_dataset(name).sha256


def test_an_unknown_task_dataset_is_refused():
    with pytest.raises(InvalidInputError, match="'imagenet'; did you mean 'image_segments'"):
        load_task_dataset("imagenet")
