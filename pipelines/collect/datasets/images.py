"""Images that come inside scikit-learn and scikit-image: digits, and patches cut from photographs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from pipelines.collect.datasets.dataset import TaskDataset, shuffled_splits, standardize
from pipelines.collect.datasets.libraries import scikit_image_data, scikit_learn_datasets

PATCH = 8


def digits(pixels: int) -> TaskDataset:
    """Handwritten digits, 10 classes: grey images of 8 x 8, or halved to 4 x 4, or doubled to 16 x 16."""
    bunch = scikit_learn_datasets().load_digits()
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
    """Patches of two colour photographs: from which one and which quadrant of it they are, 8 classes."""
    photographs = scikit_learn_datasets().load_sample_images().images
    cut = [_cut(_halved(np.asarray(photograph, np.float64) / 255)) for photograph in photographs]
    inputs = np.concatenate([patches for patches, _ in cut])
    labels = np.concatenate([4 * number + quadrants for number, (_, quadrants) in enumerate(cut)])
    splits = shuffled_splits(inputs, labels, train=500, valid=1000)
    return TaskDataset("sample_patches", "image", 8, *standardize(splits, axis=None))


def textures() -> TaskDataset:
    """Patches of grey photographs of brick, grass and gravel: which of the three."""
    data = scikit_image_data()
    photographs = [
        np.asarray(image(), np.float64)[..., None] for image in (data.brick, data.grass, data.gravel)
    ]
    cut = [_cut(_halved(photograph / 255)) for photograph in photographs]
    inputs = np.concatenate([patches for patches, _ in cut])
    labels = np.concatenate([np.full(len(patches), number) for number, (patches, _) in enumerate(cut)])
    splits = shuffled_splits(inputs, labels, train=400, valid=800, test=400)
    return TaskDataset("textures", "image", 3, *standardize(splits, axis=None))


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
    """Cut a photograph into squares that do not overlap, with the quadrant of each."""
    rows, columns = photograph.shape[0] // PATCH, photograph.shape[1] // PATCH
    whole = photograph[: rows * PATCH, : columns * PATCH]
    grid = whole.reshape(rows, PATCH, columns, PATCH, -1).transpose(0, 2, 1, 3, 4)
    quadrants = 2 * (np.arange(rows) * 2 // rows)[:, None] + np.arange(columns) * 2 // columns
    return grid.reshape(-1, PATCH, PATCH, photograph.shape[2]), quadrants.reshape(-1)
