"""What a network is, and its layers as pure functions of a dictionary of weights.

Trials train side by side under `vmap`, each with weights of its own. A convolution would then become a
grouped one, which XLA does not compile well on CPUs; so convolutions are patches times a matrix here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperbo_pipelines.collect.datasets import InputKind, TaskDataset

# Of the running statistics. Trainings are short, so old batches are forgotten in tens of steps.
STATISTICS_DECAY = 0.9
_SMALLEST_VARIANCE = 1e-5
Parameters = dict[str, Array]
Statistics = dict[str, Array]


class Start(NamedTuple):
    """The weights and statistics of a network before its first step.

    Attributes:
      parameters: weights, trained.
      statistics: running means and variances of batch normalisation; empty without it.
    """

    parameters: Parameters
    statistics: Statistics


class Model(NamedTuple):
    """A network.

    Attributes:
      family: name of the model in a trial's row, as in PD1 (`max_pooling_cnn`).
      kind: the kind of input it takes.
      init: (generator, task dataset) -> the network before its first step.
      apply: (parameters, statistics, inputs, training) -> logits, and the statistics after this batch. The
        logits have a row per example, or per example and position if each position has a label.
    """

    family: str
    kind: InputKind
    init: Callable[[np.random.Generator, TaskDataset], Start]
    apply: Callable[[Parameters, Statistics, Array, bool], tuple[Array, Statistics]]


def start_dense(
    generator: np.random.Generator, name: str, inputs: int, outputs: int, gain: float
) -> Parameters:
    """Normal weights of variance gain / inputs (He's for relu at a gain of 2), offsets of zero."""
    weights = generator.normal(0.0, np.sqrt(gain / inputs), (inputs, outputs))
    return {f"{name}/w": jnp.asarray(weights, jnp.float32), f"{name}/b": jnp.zeros(outputs)}


def start_table(generator: np.random.Generator, rows: int, width: int) -> Array:
    """Embeddings: one row for each token or position."""
    return jnp.asarray(generator.normal(0.0, 0.3, (rows, width)), jnp.float32)


def start_norm(name: str, channels: int) -> Parameters:
    """The scale and offset of a normalisation."""
    return {f"{name}/s": jnp.ones(channels), f"{name}/o": jnp.zeros(channels)}


def start_statistics(name: str, channels: int) -> Statistics:
    """Running mean and variance of a batch normalisation."""
    return {f"{name}/mean": jnp.zeros(channels), f"{name}/variance": jnp.ones(channels)}


def dense(parameters: Parameters, name: str, x: Float[Array, "... i"]) -> Float[Array, "... o"]:
    """X W + b."""
    return x @ parameters[f"{name}/w"] + parameters[f"{name}/b"]


def convolve(
    parameters: Parameters, name: str, x: Float[Array, "n h w c"], stride: int = 1
) -> Float[Array, "n p q o"]:
    """A 3 x 3 convolution, zero-padded at the border, of every `stride`-th pixel."""
    return dense(parameters, name, _patches(x, stride))


def _patches(x: Float[Array, "n h w c"], stride: int) -> Float[Array, "n p q 9c"]:
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [
        padded[:, row : row + height : stride, column : column + width : stride]
        for row in range(3)
        for column in range(3)
    ]
    return jnp.concatenate(shifts, axis=-1)


def max_pool(x: Float[Array, "n h w c"]) -> Float[Array, "n h/2 w/2 c"]:
    """The largest value of every square of 2 x 2."""
    count, height, width, channels = x.shape
    return x.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def layer_norm(parameters: Parameters, name: str, x: Float[Array, "... c"]) -> Float[Array, "... c"]:
    """Centre and scale the channels of each position, Ba et al. (2016)."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return _scale(parameters, name, x, mean, variance)


def batch_norm(
    parameters: Parameters, statistics: Statistics, name: str, x: Float[Array, "n h w c"], training: bool
) -> tuple[Float[Array, "n h w c"], Statistics]:
    """Centre and scale each channel over a batch, Ioffe and Szegedy (2015).

    In training by the batch's own mean and variance, otherwise by the running ones.

    Returns:
      The normalised features, and all statistics after this batch.
    """
    mean, variance = statistics[f"{name}/mean"], statistics[f"{name}/variance"]
    if not training:
        return _scale(parameters, name, x, mean, variance), statistics
    of_batch = x.mean(axis=(0, 1, 2))
    around = jnp.square(x - of_batch).mean(axis=(0, 1, 2))
    keep, take = STATISTICS_DECAY, 1 - STATISTICS_DECAY
    updated = {
        f"{name}/mean": keep * mean + take * jax.lax.stop_gradient(of_batch),
        f"{name}/variance": keep * variance + take * jax.lax.stop_gradient(around),
    }
    return _scale(parameters, name, x, of_batch, around), statistics | updated


def _scale(parameters: Parameters, name: str, x: Array, mean: Array, variance: Array) -> Array:
    scaled = (x - mean) * jax.lax.rsqrt(variance + _SMALLEST_VARIANCE)
    return scaled * parameters[f"{name}/s"] + parameters[f"{name}/o"]


def attend(
    parameters: Parameters, name: str, x: Float[Array, "n t w"], heads: int, *, causal: bool
) -> Float[Array, "n t w"]:
    """Multi-head attention of all positions to all, or to those before them, Vaswani et al. (2017)."""
    count, length, width = x.shape
    qkv = dense(parameters, f"{name}/qkv", x).reshape(count, length, 3, heads, width // heads)
    query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / np.sqrt(width // heads)
    if causal:
        scores = jnp.where(np.tril(np.ones((length, length), bool)), scores, -1e30)
    mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores, axis=-1), value)
    return dense(parameters, f"{name}/mix", mixed.reshape(count, length, width))


def start_attention(generator: np.random.Generator, name: str, width: int) -> Parameters:
    """Weights of `attend`."""
    return start_dense(generator, f"{name}/qkv", width, 3 * width, 1.0) | start_dense(
        generator, f"{name}/mix", width, width, 1.0
    )
