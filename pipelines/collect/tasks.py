"""Task datasets: real data that comes inside scikit-learn, split once and for all by a fixed seed.

Training sets are small and validation sets large on purpose: the objective of a tuning task is
-log(validation error), which needs errors that stay above zero and move in small steps.
"""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from hyperbo.errors import InvalidInputError, NotAvailableError

InputKind = Literal["image", "table", "text"]
SPLIT_SEED = 20240501
PATCH_PIXELS = 16
TEXT_CONTEXT = 32


@dataclass(frozen=True)
class Split:
    """Examples of one split; a label per example, or per position for text."""

    inputs: Float32[np.ndarray, "n ..."] | Int32[np.ndarray, "n length"]
    labels: Int32[np.ndarray, "*n"]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TaskDataset:
    """Train, validation and test splits of one classification problem.

    Attributes:
      name: name in the tuning dataset; tasks that share it are related.
      kind: what an input is: `image` (height, width, channels), `table` (features,), `text` (positions,).
      classes: number of labels.
      train: examples that trials are trained on.
      valid: examples that give the objective.
      test: examples reported beside it.
    """

    name: str
    kind: InputKind
    classes: int
    train: Split
    valid: Split
    test: Split

    @property
    def sha256(self) -> str:
        """Hash over all arrays: tells whether another scikit-learn ships the same data."""
        digest = hashlib.sha256()
        for split in (self.train, self.valid, self.test):
            for array in (split.inputs, split.labels):
                digest.update(repr((array.shape, array.dtype.str)).encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def _split(
    inputs: np.ndarray, labels: np.ndarray, train: int, valid: int, test: int | None = None
) -> tuple[Split, Split, Split]:
    """Shuffle by the fixed seed and cut; `test` takes the rest where it is not given."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    end = len(labels) if test is None else train + valid + test
    parts = np.split(order[:end], [train, train + valid])
    first, second, third = (Split(inputs[part], labels[part].astype(np.int32)) for part in parts)
    return first, second, third


def _standardize(splits: tuple[Split, Split, Split], axis: int | None) -> tuple[Split, Split, Split]:
    """Scale inputs to mean 0 and variance 1 of the *training* split: per feature (axis 0) or overall."""
    train = np.asarray(splits[0].inputs, np.float64)
    mean, deviation = train.mean(axis=axis), train.std(axis=axis)
    first, second, third = (
        Split(((split.inputs - mean) / deviation).astype(np.float32), split.labels) for split in splits
    )
    return first, second, third


def _digits() -> TaskDataset:
    """Handwritten digits, 8 x 8 grey images, 10 classes."""
    bunch: Any = _sklearn_datasets().load_digits()
    splits = _split(bunch.images[..., None], bunch.target, train=300, valid=1000)
    return TaskDataset("digits", "image", 10, *_standardize(splits, axis=None))


def _breast_cancer() -> TaskDataset:
    """Breast cancer diagnosis, 2 classes; from the 10 mean measurements, for all 30 make it too easy."""
    bunch: Any = _sklearn_datasets().load_breast_cancer()
    splits = _split(bunch.data[:, :10], bunch.target, train=120, valid=400)
    return TaskDataset("breast_cancer", "table", 2, *_standardize(splits, axis=0))


def _diabetes() -> TaskDataset:
    """Disease progression from 10 measurements; its quartiles as 4 classes."""
    bunch: Any = _sklearn_datasets().load_diabetes()
    quartiles = np.quantile(bunch.target, [0.25, 0.5, 0.75])
    splits = _split(bunch.data, np.searchsorted(quartiles, bunch.target), train=120, valid=250)
    return TaskDataset("diabetes", "table", 4, *_standardize(splits, axis=0))


def _sample_patches() -> TaskDataset:
    """Patches of two photographs; which photograph and quadrant of it they were cut from, 8 classes."""
    photographs: Any = _sklearn_datasets().load_sample_images().images
    cut = [_cut(np.asarray(photograph, np.float64) / 255) for photograph in photographs]
    inputs = np.concatenate([patches for patches, _ in cut])
    labels = np.concatenate([4 * number + quadrants for number, (_, quadrants) in enumerate(cut)])
    splits = _split(inputs, labels, train=500, valid=1000)
    return TaskDataset("sample_patches", "image", 8, *_standardize(splits, axis=None))


def _cut(
    photograph: Float64[np.ndarray, "h w 3"],
) -> tuple[Float64[np.ndarray, "n 8 8 3"], Int64[np.ndarray, " n"]]:
    """Cut a photograph into squares that do not overlap, at half resolution, with the quadrant of each."""
    half = PATCH_PIXELS // 2
    rows, columns = photograph.shape[0] // PATCH_PIXELS, photograph.shape[1] // PATCH_PIXELS
    whole = photograph[: rows * PATCH_PIXELS, : columns * PATCH_PIXELS]
    grid = whole.reshape(rows, half, 2, columns, half, 2, 3).mean(axis=(2, 5))
    quadrants = 2 * (np.arange(rows) * 2 // rows)[:, None] + np.arange(columns) * 2 // columns
    return grid.transpose(0, 2, 1, 3, 4).reshape(-1, half, half, 3), quadrants.reshape(-1)


def _sklearn_text() -> TaskDataset:
    """The next character of text: the dataset descriptions of scikit-learn, in lower case.

    One class per character; the text is cut into windows that do not overlap.
    """
    folder = importlib.resources.files("sklearn.datasets").joinpath("descr")
    pages = sorted((page for page in folder.iterdir() if page.name.endswith(".rst")), key=lambda p: p.name)
    text = "".join(page.read_text(encoding="utf-8") for page in pages).lower()
    alphabet = sorted(set(text))
    codes = np.searchsorted(alphabet, list(text)).astype(np.int32)
    count = (len(codes) - 1) // TEXT_CONTEXT
    inputs = codes[: count * TEXT_CONTEXT].reshape(count, TEXT_CONTEXT)
    labels = codes[1 : count * TEXT_CONTEXT + 1].reshape(count, TEXT_CONTEXT)
    return TaskDataset(
        "sklearn_text", "text", len(alphabet), *_split(inputs, labels, train=700, valid=300, test=100)
    )


def _sklearn_datasets() -> Any:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise NotAvailableError(
            "collecting trials needs scikit-learn: install the extra `collect`"
        ) from error
    return sklearn.datasets


TASK_DATASETS: dict[str, Callable[[], TaskDataset]] = {
    "digits": _digits,
    "breast_cancer": _breast_cancer,
    "diabetes": _diabetes,
    "sample_patches": _sample_patches,
    "sklearn_text": _sklearn_text,
}


def load_task_dataset(name: str) -> TaskDataset:
    """Load a task dataset by name.

    Raises:
      InvalidInputError: no task dataset has that name.
      NotAvailableError: scikit-learn is not installed.
    """
    if name not in TASK_DATASETS:
        raise InvalidInputError(
            f"unknown task dataset {name!r}", fix=f"use one of {', '.join(TASK_DATASETS)}"
        )
    return TASK_DATASETS[name]()
