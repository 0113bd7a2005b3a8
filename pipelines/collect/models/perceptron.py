"""A multilayer perceptron for tables."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float

from pipelines.collect.datasets import TaskDataset
from pipelines.collect.models.layers import dense, start_dense
from pipelines.collect.models.model import Model, Parameters, Start, Statistics


def multilayer_perceptron(hidden: int) -> Model:
    """Two hidden relu layers."""

    def init(generator: np.random.Generator, dataset: TaskDataset) -> Start:
        (features,) = dataset.train.inputs.shape[1:]
        parameters = (
            start_dense(generator, "dense1", features, hidden, 2.0)
            | start_dense(generator, "dense2", hidden, hidden, 2.0)
            | start_dense(generator, "logits", hidden, dataset.classes, 1.0)
        )
        return Start(parameters, {})

    def apply(
        parameters: Parameters, statistics: Statistics, x: Float[Array, "n f"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        x = jax.nn.relu(dense(parameters, "dense1", x))
        x = jax.nn.relu(dense(parameters, "dense2", x))
        return dense(parameters, "logits", x), statistics

    return Model("mlp", "table", init, apply)
