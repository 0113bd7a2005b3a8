"""What a network is: how its weights start, and its logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array

from pipelines.collect.datasets import InputKind, TaskDataset

Parameters = dict[str, Array]
Statistics = dict[str, Array]


class Start(NamedTuple):
    """A network before its first step.

    Attributes:
      parameters: weights, trained.
      statistics: running means and variances of the features that are normalised over a batch; empty without.
    """

    parameters: Parameters
    statistics: Statistics


class Model(NamedTuple):
    """A network.

    Attributes:
      family: the model of the trial's row, as in PD1 (`max_pooling_cnn`).
      kind: the kind of input it takes.
      init: (generator, task dataset) -> where it starts.
      apply: (parameters, statistics, inputs, whether in training) -> logits, a row per example (and position,
        where each has a label), and the statistics after this batch.
    """

    family: str
    kind: InputKind
    init: Callable[[np.random.Generator, TaskDataset], Start]
    apply: Callable[[Parameters, Statistics, Array, bool], tuple[Array, Statistics]]
