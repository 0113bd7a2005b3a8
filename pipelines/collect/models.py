"""Models of the tuning tasks, as pure functions: small relatives of those that PD1 was collected with.

Trials train side by side under `vmap`, each with weights of its own. A convolution would then become a
grouped one, which XLA does not compile well on CPUs; so convolutions are patches times a matrix here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pipelines.collect.tasks import InputKind

Parameters = dict[str, Array]
Activation = Callable[[Array], Array]


@dataclass(frozen=True)
class Model:
    """A network: how its weights start, and its logits.

    Attributes:
      family: the model of the trial's row, as in PD1 (`max_pooling_cnn`).
      kind: the kind of input it takes.
      init: (generator, shape of one input, number of classes) -> weights.
      apply: (weights, inputs) -> logits, one row per example (and position, for text).
    """

    family: str
    kind: InputKind
    init: Callable[[np.random.Generator, tuple[int, ...], int], Parameters]
    apply: Callable[[Parameters, Array], Array]


def _weights(generator: np.random.Generator, inputs: int, outputs: int, gain: float = 2.0) -> Array:
    """Normal weights of variance gain / inputs: He's for relu at the default gain."""
    return jnp.asarray(generator.normal(0.0, np.sqrt(gain / inputs), (inputs, outputs)), jnp.float32)


def _layer(generator: np.random.Generator, name: str, inputs: int, outputs: int, gain: float) -> Parameters:
    return {f"{name}/w": _weights(generator, inputs, outputs, gain), f"{name}/b": jnp.zeros(outputs)}


def _dense(parameters: Parameters, name: str, x: Float[Array, "... i"]) -> Float[Array, "... o"]:
    return x @ parameters[f"{name}/w"] + parameters[f"{name}/b"]


def _patches(x: Float[Array, "n h w c"], stride: int = 1) -> Float[Array, "n p q 9c"]:
    """The 3 x 3 neighbourhood of every pixel, zero-padded at the border, of every `stride`-th pixel."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [
        padded[:, row : row + height : stride, column : column + width : stride]
        for row in range(3)
        for column in range(3)
    ]
    return jnp.concatenate(shifts, axis=-1)


def _convolve(parameters: Parameters, name: str, x: Float[Array, "n h w c"], stride: int = 1) -> Array:
    return _dense(parameters, name, _patches(x, stride))


def _max_pool(x: Float[Array, "n h w c"]) -> Float[Array, "n h/2 w/2 c"]:
    count, height, width, channels = x.shape
    return x.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def _normalize(
    parameters: Parameters, name: str, x: Float[Array, "... c"], axes: tuple[int, ...]
) -> Float[Array, "... c"]:
    """Centre and scale over the axes given, then by learned scale and offset per channel."""
    mean = x.mean(axis=axes, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=axes, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * parameters[f"{name}/s"] + parameters[f"{name}/o"]


def _norm_layer(name: str, channels: int) -> Parameters:
    return {f"{name}/s": jnp.ones(channels), f"{name}/o": jnp.zeros(channels)}


def _multilayer_perceptron(hidden: int) -> Model:
    """Two hidden relu layers."""

    def init(generator: np.random.Generator, shape: tuple[int, ...], classes: int) -> Parameters:
        return (
            _layer(generator, "dense1", shape[0], hidden, 2.0)
            | _layer(generator, "dense2", hidden, hidden, 2.0)
            | _layer(generator, "logits", hidden, classes, 1.0)
        )

    def apply(parameters: Parameters, x: Float[Array, "n f"]) -> Float[Array, "n k"]:
        x = jax.nn.relu(_dense(parameters, "dense1", x))
        x = jax.nn.relu(_dense(parameters, "dense2", x))
        return _dense(parameters, "logits", x)

    return Model("mlp", "table", init, apply)


def _simple_cnn(channels: int) -> Model:
    """Two relu convolutions of stride 2 and a dense layer."""

    def init(generator: np.random.Generator, shape: tuple[int, ...], classes: int) -> Parameters:
        height, width, depth = shape
        features = (height // 4) * (width // 4) * 2 * channels
        return (
            _layer(generator, "conv1", 9 * depth, channels, 2.0)
            | _layer(generator, "conv2", 9 * channels, 2 * channels, 2.0)
            | _layer(generator, "logits", features, classes, 1.0)
        )

    def apply(parameters: Parameters, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
        x = jax.nn.relu(_convolve(parameters, "conv1", x, stride=2))
        x = jax.nn.relu(_convolve(parameters, "conv2", x, stride=2))
        return _dense(parameters, "logits", x.reshape(len(x), -1))

    return Model("simple_cnn", "image", init, apply)


def _max_pooling_cnn(channels: int, hidden: int, activation: Activation, gain: float) -> Model:
    """Two convolutions, each followed by 2 x 2 max pooling, and a hidden dense layer."""

    def init(generator: np.random.Generator, shape: tuple[int, ...], classes: int) -> Parameters:
        height, width, depth = shape
        features = (height // 4) * (width // 4) * 2 * channels
        return (
            _layer(generator, "conv1", 9 * depth, channels, gain)
            | _layer(generator, "conv2", 9 * channels, 2 * channels, gain)
            | _layer(generator, "dense", features, hidden, gain)
            | _layer(generator, "logits", hidden, classes, 1.0)
        )

    def apply(parameters: Parameters, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
        x = _max_pool(activation(_convolve(parameters, "conv1", x)))
        x = _max_pool(activation(_convolve(parameters, "conv2", x)))
        x = activation(_dense(parameters, "dense", x.reshape(len(x), -1)))
        return _dense(parameters, "logits", x)

    return Model("max_pooling_cnn", "image", init, apply)


def _wide_resnet(channels: int) -> Model:
    """Two pre-activation residual blocks, normalised per example and channel, and global pooling."""

    def init(generator: np.random.Generator, shape: tuple[int, ...], classes: int) -> Parameters:
        parameters = _layer(generator, "stem", 9 * shape[2], channels, 2.0)
        width = channels
        for block in ("block1", "block2"):
            wider = channels if block == "block1" else 2 * channels
            parameters |= _norm_layer(f"{block}/norm1", width) | _norm_layer(f"{block}/norm2", wider)
            parameters |= _layer(generator, f"{block}/conv1", 9 * width, wider, 2.0)
            parameters |= _layer(generator, f"{block}/conv2", 9 * wider, wider, 2.0)
            parameters |= _layer(generator, f"{block}/skip", width, wider, 1.0)
            width = wider
        return parameters | _layer(generator, "logits", width, classes, 1.0)

    def residual(parameters: Parameters, block: str, x: Array, stride: int) -> Array:
        y = jax.nn.relu(_normalize(parameters, f"{block}/norm1", x, (1, 2, 3)))
        y = _convolve(parameters, f"{block}/conv1", y, stride)
        y = jax.nn.relu(_normalize(parameters, f"{block}/norm2", y, (1, 2, 3)))
        y = _convolve(parameters, f"{block}/conv2", y)
        return y + _dense(parameters, f"{block}/skip", x[:, ::stride, ::stride])

    def apply(parameters: Parameters, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
        x = _convolve(parameters, "stem", x, stride=2)
        x = residual(parameters, "block1", x, stride=1)
        x = residual(parameters, "block2", x, stride=2)
        return _dense(parameters, "logits", jax.nn.relu(x).mean(axis=(1, 2)))

    return Model("wide_resnet", "image", init, apply)


def _transformer(width: int, heads: int) -> Model:
    """One pre-normalised decoder block: causal attention, then a relu layer of twice the width."""

    def init(generator: np.random.Generator, shape: tuple[int, ...], classes: int) -> Parameters:
        embeddings = {
            "tokens": jnp.asarray(generator.normal(0.0, 0.3, (classes, width)), jnp.float32),
            "positions": jnp.asarray(generator.normal(0.0, 0.3, (shape[0], width)), jnp.float32),
        }
        return (
            embeddings
            | _norm_layer("norm1", width)
            | _layer(generator, "qkv", width, 3 * width, 1.0)
            | _layer(generator, "mix", width, width, 1.0)
            | _norm_layer("norm2", width)
            | _layer(generator, "dense1", width, 2 * width, 2.0)
            | _layer(generator, "dense2", 2 * width, width, 1.0)
            | _layer(generator, "logits", width, classes, 1.0)
        )

    def attend(parameters: Parameters, x: Float[Array, "n t w"]) -> Float[Array, "n t w"]:
        count, length, _ = x.shape
        qkv = _dense(parameters, "qkv", x).reshape(count, length, 3, heads, width // heads)
        query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / np.sqrt(width // heads)
        causal = np.tril(np.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
        mixed = jnp.einsum("nhqk,nkhd->nqhd", weights, value)
        return _dense(parameters, "mix", mixed.reshape(count, length, width))

    def apply(parameters: Parameters, tokens: Int[Array, "n t"]) -> Float[Array, "n t k"]:
        # One-hot times matrix: its gradient is a matrix product, where indexing would scatter.
        one_hot = jax.nn.one_hot(tokens, parameters["tokens"].shape[0])
        x = one_hot @ parameters["tokens"] + parameters["positions"]
        x = x + attend(parameters, _normalize(parameters, "norm1", x, (-1,)))
        hidden = jax.nn.relu(_dense(parameters, "dense1", _normalize(parameters, "norm2", x, (-1,))))
        x = x + _dense(parameters, "dense2", hidden)
        return _dense(parameters, "logits", x)

    return Model("transformer", "text", init, apply)


# By variant, the name that tells apart models of one family.
MODELS: dict[str, Model] = {
    "mlp": _multilayer_perceptron(hidden=32),
    "simple_cnn": _simple_cnn(channels=8),
    "max_pool_relu": _max_pooling_cnn(channels=8, hidden=32, activation=jax.nn.relu, gain=2.0),
    "max_pool_tanh": _max_pooling_cnn(channels=8, hidden=32, activation=jnp.tanh, gain=1.0),
    "wide_resnet": _wide_resnet(channels=16),
    "transformer": _transformer(width=32, heads=2),
}
