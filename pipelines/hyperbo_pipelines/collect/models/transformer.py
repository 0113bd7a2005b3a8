"""Transformers: a decoder that predicts the next token, and encoders that classify a sequence."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from hyperbo_pipelines.collect.datasets import TaskDataset
from hyperbo_pipelines.collect.models.layers import (
    Model,
    Parameters,
    Start,
    Statistics,
    attend,
    dense,
    layer_norm,
    start_attention,
    start_dense,
    start_norm,
    start_table,
)


def decoder(width: int, heads: int) -> Model:
    """One pre-normalised block of causal attention and a relu layer; logits at every position."""

    def apply(
        parameters: Parameters, statistics: Statistics, tokens: Int[Array, "n t"], training: bool
    ) -> tuple[Float[Array, "n t k"], Statistics]:
        x = _block(parameters, _embed_tokens(parameters, tokens), heads, causal=True)
        return dense(parameters, "logits", x), statistics

    return Model("transformer", "tokens", partial(_start, width=width), apply)


def token_encoder(width: int, heads: int) -> Model:
    """One pre-normalised block that sees the whole sequence; logits of the mean over positions."""

    def apply(
        parameters: Parameters, statistics: Statistics, tokens: Int[Array, "n t"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        x = _block(parameters, _embed_tokens(parameters, tokens), heads, causal=False)
        return dense(parameters, "logits", x.mean(axis=1)), statistics

    return Model("transformer_encoder", "tokens", partial(_start, width=width), apply)


def sequence_encoder(width: int, heads: int) -> Model:
    """The same for sequences of numbers, which a linear layer embeds."""

    def apply(
        parameters: Parameters, statistics: Statistics, x: Float[Array, "n t f"], training: bool
    ) -> tuple[Float[Array, "n k"], Statistics]:
        embedded = dense(parameters, "embedding", x) + parameters["positions"]
        x = _block(parameters, embedded, heads, causal=False)
        return dense(parameters, "logits", x.mean(axis=1)), statistics

    return Model("transformer_encoder", "sequence", partial(_start, width=width), apply)


def _start(generator: np.random.Generator, dataset: TaskDataset, width: int) -> Start:
    positions = dataset.train.inputs.shape[1]
    if dataset.vocabulary:
        embedding = {"tokens": start_table(generator, dataset.vocabulary, width)}
    else:
        embedding = start_dense(generator, "embedding", dataset.train.inputs.shape[2], width, 1.0)
    parameters = (
        embedding
        | {"positions": start_table(generator, positions, width)}
        | start_norm("norm1", width)
        | start_attention(generator, "attention", width)
        | start_norm("norm2", width)
        | start_dense(generator, "dense1", width, 2 * width, 2.0)
        | start_dense(generator, "dense2", 2 * width, width, 1.0)
        | start_dense(generator, "logits", width, dataset.classes, 1.0)
    )
    return Start(parameters, {})


def _embed_tokens(parameters: Parameters, tokens: Int[Array, "n t"]) -> Float[Array, "n t w"]:
    # One-hot times matrix: its gradient is a matrix product, where indexing would scatter.
    one_hot = jax.nn.one_hot(tokens, parameters["tokens"].shape[0])
    return one_hot @ parameters["tokens"] + parameters["positions"]


def _block(
    parameters: Parameters, x: Float[Array, "n t w"], heads: int, *, causal: bool
) -> Float[Array, "n t w"]:
    x = x + attend(parameters, "attention", layer_norm(parameters, "norm1", x), heads, causal=causal)
    hidden = jax.nn.relu(dense(parameters, "dense1", layer_norm(parameters, "norm2", x)))
    return x + dense(parameters, "dense2", hidden)
