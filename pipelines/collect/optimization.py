"""How a trial is optimised: its learning rates, the order of its examples, and one step of momentum."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float, Float64, Int32

from pipelines.collect.models import Parameters

END_FACTOR = 1e-3


def learning_rates(
    initial: Float64[np.ndarray, " p"],
    power: Float64[np.ndarray, " p"],
    decay_steps_factor: Float64[np.ndarray, " p"],
    steps: int,
) -> Float64[np.ndarray, "p t"]:
    """Polynomial decay to a thousandth of the initial learning rate, Eq. (lr-schedule).

        eta_t = eta / 1000 + (eta - eta / 1000) (1 - min(t, lambda T) / (lambda T))^p

    Args:
      initial: eta.
      power: p.
      decay_steps_factor: lambda, the share of the training in which the rate decays.
      steps: T; a column for every step t = 0 .. T - 1.

    >>> rates = learning_rates(np.array([1.0]), np.array([1.0]), np.array([0.5]), steps=4)
    >>> rates.round(4).tolist()
    [[1.0, 0.5005, 0.001, 0.001]]
    """
    decay_steps = decay_steps_factor[:, None] * steps
    remaining = 1 - np.minimum(np.arange(steps), decay_steps) / decay_steps
    end = initial[:, None] * END_FACTOR
    return end + (initial[:, None] - end) * remaining ** power[:, None]


def batch_order(examples: int, batch_size: int, steps: int, seed: int) -> Int32[np.ndarray, "t b"]:
    """Example numbers of every step's minibatch: a new permutation each epoch, its remainder dropped."""
    generator = np.random.default_rng(seed)
    per_epoch = examples // batch_size
    epochs = -(-steps // per_epoch)
    order = [generator.permutation(examples)[: per_epoch * batch_size] for _ in range(epochs)]
    return np.concatenate(order).reshape(-1, batch_size)[:steps].astype(np.int32)


def nesterov_step(
    parameters: Parameters,
    velocity: Parameters,
    gradient: Parameters,
    learning_rate: Float[Array, ""],
    momentum: Float[Array, ""],
) -> tuple[Parameters, Parameters]:
    """One step of Nesterov momentum as in Sutskever et al. (2013), rewritten at the look-ahead point.

        v <- beta v + g,   w <- w - eta (g + beta v)

    Returns:
      The new parameters and velocity.
    """
    velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, gradient)
    parameters = jax.tree.map(
        lambda w, v, g: w - learning_rate * (g + momentum * v), parameters, velocity, gradient
    )
    return parameters, velocity
