"""Models of the tuning tasks, as pure functions: small relatives of those that PD1 was collected with."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from hyperbo_pipelines.collect.models.feedforward import (
    max_pooling_cnn,
    multilayer_perceptron,
    simple_cnn,
    wide_resnet,
)
from hyperbo_pipelines.collect.models.layers import Model, Parameters, Start, Statistics
from hyperbo_pipelines.collect.models.transformer import decoder, sequence_encoder, token_encoder

__all__ = ["MODELS", "Model", "Parameters", "Start", "Statistics"]

# By variant: the name that tells apart the models of one family.
MODELS: dict[str, Model] = {
    "mlp": multilayer_perceptron(hidden=32),
    "simple_cnn": simple_cnn(channels=8),
    "max_pool_relu": max_pooling_cnn(channels=8, hidden=32, activation=jax.nn.relu, gain=2.0),
    "max_pool_tanh": max_pooling_cnn(channels=8, hidden=32, activation=jnp.tanh, gain=1.0),
    "wide_resnet": wide_resnet(channels=12),
    "transformer": decoder(width=24, heads=2),
    "token_encoder": token_encoder(width=24, heads=2),
    "sequence_encoder": sequence_encoder(width=24, heads=2),
}
