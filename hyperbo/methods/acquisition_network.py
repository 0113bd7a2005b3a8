"""The neural acquisition function: a network that scores candidates from what the posterior says of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.pytree import pytree

# Besides the input itself: posterior mean and standard deviation, step and horizon.
EXTRA_INPUTS = 4


@pytree
class ReLUNetwork:
    """Dense layers with ReLU between them and one linear output, in float32."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, inputs: Float[Array, "*batch e"]) -> Float[Array, "*batch"]:
        """One number for every row of inputs."""
        *hidden, (weight, bias) = zip(self.weights, self.biases, strict=True)
        for hidden_weight, hidden_bias in hidden:
            inputs = jax.nn.relu(inputs @ hidden_weight + hidden_bias)
        return (inputs @ weight + bias)[..., 0]


def initialise_network(
    key: PRNGKeyArray, inputs: int, hidden: Sequence[int], weight_scale: float
) -> ReLUNetwork:
    """Draw a network: weights from N(0, weight_scale^2), zero biases, float32.

    Args:
      key: random key.
      inputs: width of a row of inputs.
      hidden: sizes of the ReLU layers.
      weight_scale: standard deviation of a weight.
    """
    shapes = list(itertools.pairwise((inputs, *hidden, 1)))
    weights = tuple(
        weight_scale * jax.random.normal(layer_key, shape, jnp.float32)
        for layer_key, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
    )
    return ReLUNetwork(weights, tuple(jnp.zeros(width, jnp.float32) for _, width in shapes))


def network_inputs(
    posterior: CandidatePosterior, candidates: Float[Array, "c d"], step: Int[Array, ""], horizon: int
) -> Float[Array, "c e"]:
    """What the network sees of every candidate: posterior mean and standard deviation, x, t and T; float32.

    The deviation is that of the function, without noise. A run longer than the episodes of training stays at
    their last step, since the network saw no later one.

    Args:
      posterior: after `step` observations.
      candidates: their inputs.
      step: t.
      horizon: T, of the episodes of training.
    """
    count = len(candidates)
    time = step_and_horizon(step, horizon)
    columns = (posterior.mean, jnp.sqrt(posterior.variance), candidates, jnp.broadcast_to(time, (count, 2)))
    return jnp.column_stack(columns).astype(jnp.float32)


def step_and_horizon(step: Int[Array, ""], horizon: int) -> Float[Array, " 2"]:
    """(t, T), as both networks see them; t ends with the last step of an episode."""
    return jnp.stack([jnp.minimum(step, horizon - 1), jnp.asarray(horizon, step.dtype)]).astype(jnp.float32)
