"""Images: digits and photographs of scikit-learn and scikit-image, also row by row, and downloads of TFDS."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from hyperbo_pipelines.collect.datasets.dataset import (
    Split,
    TaskDataset,
    library_module,
    shuffled_splits,
    standardize,
)

PATCH = 8
ROW, ROW_DISTANCE = 16, 8  # pixels; neighbouring rows look alike, so not every one is taken
DOWNLOADED = ("mnist", "fashion_mnist", "cifar10", "svhn_cropped")
TRAIN, VALID, TEST = 2000, 5000, 5000


def digits(pixels: int) -> TaskDataset:
    """Handwritten digits, 10 classes: grey images of 8 x 8, or halved to 4 x 4, or doubled to 16 x 16."""
    bunch = library_module("sklearn.datasets").load_digits()
    images = np.asarray(bunch.images, np.float64)
    side = images.shape[1]
    if pixels < side:
        images = _shrink(images, side // pixels)
    elif pixels > side:
        from scipy.ndimage import zoom

        images = np.asarray(zoom(images, (1, pixels / side, pixels / side), order=1), np.float64)
    splits = shuffled_splits(images[..., None], bunch.target, train=300, valid=1000)
    view = "" if pixels == side else f"{pixels}x{pixels}"
    return TaskDataset("digits", "image", 10, *standardize(splits, axis=None), view=view)


def photographs() -> TaskDataset:
    """Patches of two colour photographs; the class is the photograph and the quadrant, 8 classes."""
    photographs = library_module("sklearn.datasets").load_sample_images().images
    cut = [_cut(_halved(np.asarray(photograph, np.float64) / 255)) for photograph in photographs]
    inputs = np.concatenate([patches for patches, _ in cut])
    labels = np.concatenate([4 * number + quadrants for number, (_, quadrants) in enumerate(cut)])
    splits = shuffled_splits(inputs, labels, train=500, valid=1000)
    return TaskDataset("sample_patches", "image", 8, *standardize(splits, axis=None))


def textures() -> TaskDataset:
    """Patches of grey photographs; the class is brick, grass or gravel."""
    cut = [_cut(_halved(photograph[..., None] / 255)) for photograph in _grey_photographs()]
    inputs = np.concatenate([patches for patches, _ in cut])
    labels = np.concatenate([np.full(len(patches), number) for number, (patches, _) in enumerate(cut)])
    splits = shuffled_splits(inputs, labels, train=400, valid=800, test=400)
    return TaskDataset("textures", "image", 3, *standardize(splits, axis=None))


def _grey_photographs() -> list[Float64[np.ndarray, "h w"]]:
    data = library_module("skimage.data")
    return [np.asarray(image(), np.float64) for image in (data.brick, data.grass, data.gravel)]


def _shrink(images: Float64[np.ndarray, "n h w"], factor: int) -> Float64[np.ndarray, "n p q"]:
    count, height, width = images.shape
    return images.reshape(count, height // factor, factor, width // factor, factor).mean(axis=(2, 4))


def _halved(photograph: Float64[np.ndarray, "h w c"]) -> Float64[np.ndarray, "p q c"]:
    """A photograph at half its resolution."""
    height, width, channels = photograph.shape
    whole = photograph[: height // 2 * 2, : width // 2 * 2]
    return whole.reshape(height // 2, 2, width // 2, 2, channels).mean(axis=(1, 3))


def _cut(
    photograph: Float64[np.ndarray, "h w c"],
) -> tuple[Float64[np.ndarray, "n 8 8 c"], Int64[np.ndarray, " n"]]:
    """Cut a photograph into squares without overlap, and number the quadrant of each."""
    rows, columns = photograph.shape[0] // PATCH, photograph.shape[1] // PATCH
    whole = photograph[: rows * PATCH, : columns * PATCH]
    grid = whole.reshape(rows, PATCH, columns, PATCH, -1).transpose(0, 2, 1, 3, 4)
    quadrants = 2 * (np.arange(rows) * 2 // rows)[:, None] + np.arange(columns) * 2 // columns
    return grid.reshape(-1, PATCH, PATCH, photograph.shape[2]), quadrants.reshape(-1)


def digit_rows() -> TaskDataset:
    """Handwritten digits as sequences of 8 rows of 8 pixels, 10 classes."""
    bunch = library_module("sklearn.datasets").load_digits()
    splits = shuffled_splits(np.asarray(bunch.images, np.float64), bunch.target, train=300, valid=1000)
    return TaskDataset("digits", "sequence", 10, *standardize(splits, axis=None), view="rows")


def texture_rows() -> TaskDataset:
    """Rows of 16 pixels from grey photographs; the class is brick, grass or gravel."""
    cut = [photograph[::ROW_DISTANCE].reshape(-1, ROW) for photograph in _grey_photographs()]
    inputs = np.concatenate(cut)[..., None]
    labels = np.repeat(np.arange(len(cut)), [len(rows) for rows in cut])
    splits = shuffled_splits(inputs, labels, train=400, valid=800, test=400)
    return TaskDataset("textures", "sequence", 3, *standardize(splits, axis=None), view="rows")


def downloaded(name: str) -> TaskDataset:
    """Part of an image dataset that TFDS downloads into its own folder.

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
    # If the source is too short, as a mocked one is, both parts shrink alike.
    share = min(1.0, len(source) / (first + second))
    first, second = int(first * share), int(second * share)
    order = np.random.default_rng(0).permutation(len(source))[: first + second]
    examples = [source[int(i)] for i in order]
    inputs = np.stack([np.asarray(each["image"], np.float64) / 255 for each in examples])
    labels = np.array([each["label"] for each in examples])
    return shuffled_splits(inputs, labels, first, second, 0)
