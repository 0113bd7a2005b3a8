"""A task dataset: one classification problem with three fixed splits; the libraries of the data."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Int32

from hyperbo.storage.installation import require_extras

InputKind = Literal["image", "table", "tokens", "sequence"]
SPLIT_SEED = 20240501


@dataclass(frozen=True)
class Split:
    """Examples of one split; a label per example, or per position."""

    inputs: Float32[np.ndarray, "n ..."] | Int32[np.ndarray, "n length"]
    labels: Int32[np.ndarray, "*n"]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TaskDataset:
    """Train, validation and test splits of one classification problem.

    Training sets are small and validation sets large on purpose: the objective of a tuning task is
    -log(validation error), which needs errors that stay above zero and move in small steps.

    Attributes:
      name: name in the tuning dataset; tasks that share it are related and are held out together.
      kind: what an input is: `image` (height, width, channels), `table` (features,), `tokens` (positions,),
        `sequence` (positions, features).
      classes: number of labels.
      train: examples that trials are trained on.
      valid: examples for the objective, the validation error.
      test: examples for the test metrics.
      vocabulary: number of tokens; 0 if the inputs are numbers.
      view: tells apart the problems made from one source, such as `4x4`; empty for the first one.
    """

    name: str
    kind: InputKind
    classes: int
    train: Split
    valid: Split
    test: Split
    vocabulary: int = 0
    view: str = ""

    @property
    def sha256(self) -> str:
        """Hash over all arrays; it changes if a library ships other data."""
        digest = hashlib.sha256()
        for split in (self.train, self.valid, self.test):
            for array in (split.inputs, split.labels):
                digest.update(repr((array.shape, array.dtype.str)).encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def shuffled_splits(
    inputs: np.ndarray, labels: np.ndarray, train: int, valid: int, test: int | None = None
) -> tuple[Split, Split, Split]:
    """Shuffle by the fixed seed and cut into three; without `test`, the third takes the rest."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    end = len(labels) if test is None else train + valid + test
    parts = np.split(order[:end], [train, train + valid])
    first, second, third = (Split(inputs[part], labels[part].astype(np.int32)) for part in parts)
    return first, second, third


def standardize(splits: tuple[Split, Split, Split], axis: int | None) -> tuple[Split, Split, Split]:
    """Scale inputs to mean 0 and variance 1 of the *training* split: per feature (axis 0) or overall.

    A feature that is constant in the training split becomes 0 there.
    """
    train = np.asarray(splits[0].inputs, np.float64)
    mean, deviation = train.mean(axis=axis), train.std(axis=axis)
    deviation = np.where(deviation > 0, deviation, 1.0)
    first, second, third = (
        Split(((split.inputs - mean) / deviation).astype(np.float32), split.labels) for split in splits
    )
    return first, second, third


def library_module(name: str) -> Any:
    """A module that brings data, such as `sklearn.datasets`.

    Raises:
      MissingExtraError: its library is not installed.
    """
    require_extras("collect", purpose="collecting trials")
    return importlib.import_module(name)
