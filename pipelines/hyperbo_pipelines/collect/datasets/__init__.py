"""Task datasets: real data from installable packages, split by a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import suggestion
from hyperbo_pipelines.collect.datasets import images, tables, texts
from hyperbo_pipelines.collect.datasets.dataset import InputKind, Split, TaskDataset

__all__ = ["TASK_DATASETS", "InputKind", "Split", "TaskDataset", "load_task_dataset"]

TASK_DATASETS: dict[str, Callable[[], TaskDataset]] = {
    "digits": partial(images.digits, 8),
    "digits_4x4": partial(images.digits, 4),
    "digits_16x16": partial(images.digits, 16),
    "digit_rows": images.digit_rows,
    "sample_patches": images.photographs,
    "textures": images.textures,
    "texture_rows": images.texture_rows,
    "breast_cancer": tables.breast_cancer,
    "diabetes": tables.diabetes,
    "image_segments": tables.image_segments,
    "phishing": tables.phishing,
    "characters": texts.characters,
    "words": texts.words,
    "pages": texts.pages,
    **{name: partial(images.downloaded, name) for name in images.DOWNLOADED},
}


def load_task_dataset(name: str) -> TaskDataset:
    """Load a task dataset by name.

    Raises:
      InvalidInputError: no task dataset has that name.
      NotAvailableError: the library that brings it is not installed.
    """
    if name not in TASK_DATASETS:
        raise InvalidInputError(f"unknown task dataset {name!r}", fix=suggestion(name, TASK_DATASETS))
    return TASK_DATASETS[name]()
