"""Networks for images and for tables: small relatives of those that PD1 was collected with."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Float

from hyperbo_pipelines.collect.datasets import TaskDataset
from hyperbo_pipelines.collect.models.layers import (
    Model,
    Parameters,
    Start,
    Statistics,
    batch_norm,
    convolve,
    dense,
    max_pool,
    start_dense,
    start_norm,
    start_statistics,
)

Activation = Callable[[Array], Array]


def simple_cnn(channels: int) -> Model:
    """Two relu convolutions of stride 2 and a dense layer."""

    def init(generator: np.random.Generator, dataset: TaskDataset) -> Start:
        height, width, depth = dataset.train.inputs.shape[1:]
        features = (height // 4) * (width // 4) * 2 * channels
        parameters = (
            start_dense(generator, "conv1", 9 * depth, channels, 2.0)
            | start_dense(generator, "conv2", 9 * channels, 2 * channels, 2.0)
            | start_dense(generator, "logits", features, dataset.classes, 1.0)
        )
        return Start(parameters, {})

    def apply(
        parameters: Parameters, statistics: Statistics, x: Float[Array, "n h w c"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        x = jax.nn.relu(convolve(parameters, "conv1", x, stride=2))
        x = jax.nn.relu(convolve(parameters, "conv2", x, stride=2))
        return dense(parameters, "logits", x.reshape(len(x), -1)), statistics

    return Model("simple_cnn", "image", init, apply)


def max_pooling_cnn(channels: int, hidden: int, activation: Activation, gain: float) -> Model:
    """Two convolutions, each followed by 2 x 2 max pooling, and a hidden dense layer."""

    def init(generator: np.random.Generator, dataset: TaskDataset) -> Start:
        height, width, depth = dataset.train.inputs.shape[1:]
        features = (height // 4) * (width // 4) * 2 * channels
        parameters = (
            start_dense(generator, "conv1", 9 * depth, channels, gain)
            | start_dense(generator, "conv2", 9 * channels, 2 * channels, gain)
            | start_dense(generator, "dense", features, hidden, gain)
            | start_dense(generator, "logits", hidden, dataset.classes, 1.0)
        )
        return Start(parameters, {})

    def apply(
        parameters: Parameters, statistics: Statistics, x: Float[Array, "n h w c"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        x = max_pool(activation(convolve(parameters, "conv1", x)))
        x = max_pool(activation(convolve(parameters, "conv2", x)))
        x = activation(dense(parameters, "dense", x.reshape(len(x), -1)))
        return dense(parameters, "logits", x), statistics

    return Model("max_pooling_cnn", "image", init, apply)


def wide_resnet(channels: int) -> Model:
    """Two pre-activation residual blocks with batch normalisation, and global pooling, Zagoruyko (2016)."""
    blocks = {"block1": (channels, channels, 1), "block2": (channels, 2 * channels, 2)}

    def init(generator: np.random.Generator, dataset: TaskDataset) -> Start:
        parameters = start_dense(generator, "stem", 9 * dataset.train.inputs.shape[3], channels, 2.0)
        statistics: Statistics = {}
        for block, (narrow, wide, _) in blocks.items():
            for norm, width in ((f"{block}/norm1", narrow), (f"{block}/norm2", wide)):
                parameters |= start_norm(norm, width)
                statistics |= start_statistics(norm, width)
            parameters |= start_dense(generator, f"{block}/conv1", 9 * narrow, wide, 2.0)
            parameters |= start_dense(generator, f"{block}/conv2", 9 * wide, wide, 2.0)
            parameters |= start_dense(generator, f"{block}/skip", narrow, wide, 1.0)
        parameters |= start_dense(generator, "logits", 2 * channels, dataset.classes, 1.0)
        return Start(parameters, statistics)

    def apply(
        parameters: Parameters, statistics: Statistics, x: Float[Array, "n h w c"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        x = convolve(parameters, "stem", x, stride=2)
        for block, (_, _, stride) in blocks.items():
            y, statistics = batch_norm(parameters, statistics, f"{block}/norm1", x, training)
            y = convolve(parameters, f"{block}/conv1", jax.nn.relu(y), stride)
            y, statistics = batch_norm(parameters, statistics, f"{block}/norm2", y, training)
            y = convolve(parameters, f"{block}/conv2", jax.nn.relu(y))
            x = y + dense(parameters, f"{block}/skip", x[:, ::stride, ::stride])
        return dense(parameters, "logits", jax.nn.relu(x).mean(axis=(1, 2))), statistics

    return Model("wide_resnet", "image", init, apply)


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
