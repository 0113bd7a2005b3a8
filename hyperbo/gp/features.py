"""Features: maps from inputs to the space in which mean and kernel are simple."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hyperbo.gp.pytree import pytree


@pytree
class MLP:
    """phi(x): dense layers, each followed by tanh; section "Description of All Compared Methods", H-NLL.

    Without a layer it is the identity: mean and kernel then stand on the inputs themselves.
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n e"]:
        """Features of inputs, one row per input."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = jnp.tanh(x @ weight + bias)
        return x


def initialise_mlp(key: PRNGKeyArray, dimension: int, hidden: Sequence[int]) -> MLP:
    """Draw an MLP: Glorot-normal weights, zero biases, float64.

    Args:
      key: random key; the seed of a model.
      dimension: d of the inputs.
      hidden: sizes of the layers; the last is the number of features. No layer gives the identity.
    """
    glorot = jax.nn.initializers.glorot_normal()
    sizes = (dimension, *hidden)
    keys = jax.random.split(key, len(hidden))
    pairs = itertools.pairwise(sizes)
    weights = tuple(glorot(k, shape, jnp.float64) for k, shape in zip(keys, pairs, strict=True))
    return MLP(weights, tuple(jnp.zeros(size, jnp.float64) for size in hidden))
