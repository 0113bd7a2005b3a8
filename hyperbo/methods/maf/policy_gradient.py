"""Proximal policy optimization with generalised advantage estimates, for policies that choose a candidate.

Schulman et al., "Proximal policy optimization algorithms", 2017, and "High-dimensional continuous control
using generalized advantage estimation", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.methods.maf.episodes import ReLUNetwork, log_probabilities


@dataclass(frozen=True)
class PolicyGradient:
    """Settings of proximal policy optimization; those of MAF's published code (`hyperbo.methods.maf.method`).

    Attributes:
      discount: of the reward one step later.
      trace_decay: lambda of the generalised advantage estimate.
      clip: how far the ratio of new to old probability may leave 1 and still gain.
      learning_rate: of Adam.
      value_weight: of the value network's squared error in the loss.
      entropy_weight: of the policy's entropy in the loss.
      epochs: passes over the batch of an iteration.
      minibatch: steps of episodes per update; they must divide the batch.
    """

    discount: float = 0.98
    trace_decay: float = 0.98
    clip: float = 0.15
    learning_rate: float = 1e-4
    value_weight: float = 1.0
    entropy_weight: float = 0.01
    epochs: int = 4
    minibatch: int = 60

    def __post_init__(self) -> None:
        for name in ("discount", "trace_decay"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                value = getattr(self, name)
                raise InvalidInputError(f"{name} = {value} is outside 0..1", where="PolicyGradient")
        require_positive(self, "clip", "learning_rate", "epochs", "minibatch")
        for name in ("value_weight", "entropy_weight"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise InvalidInputError(f"{name} = {getattr(self, name)} is negative", where="PolicyGradient")


@pytree
class ActorCritic:
    """The policy, which scores candidates, and the value network, which sees step and horizon alone."""

    policy: ReLUNetwork
    value: ReLUNetwork


@pytree
class Transitions:
    """Steps of episodes, of all episodes in one row; `inputs` and `time` are what the networks saw.

    Attributes:
      log_probability: of the choice, under the policy that made it.
      advantage: estimate of how much better the choice was than the policy's average.
      target: what the value network should have said.
    """

    inputs: Float[Array, "b c e"]
    mask: Bool[Array, "b c"]
    time: Float[Array, "b 2"]
    choice: Int[Array, " b"]
    log_probability: Float[Array, " b"]
    advantage: Float[Array, " b"]
    target: Float[Array, " b"]


def generalised_advantages(
    rewards: Float[Array, " t"], values: Float[Array, " t"], discount: float, trace_decay: float
) -> Float[Array, " t"]:
    r"""Advantages of the choices of one episode, which ends after its last reward.

    .. math:: A_t = \sum_{s \ge t} (\gamma \lambda)^{s - t} (r_s + \gamma V_{s+1} - V_s)
    """
    following = jnp.append(values[1:], jnp.zeros(1, values.dtype))
    surprises = rewards + discount * following - values

    def back(later: Array, surprise: Array) -> tuple[Array, Array]:
        advantage = surprise + discount * trace_decay * later
        return advantage, advantage

    return lax.scan(back, jnp.zeros((), surprises.dtype), surprises, reverse=True)[1]


def entropy(log_probability: Float[Array, "*b c"], mask: Bool[Array, "*b c"]) -> Float[Array, "*b"]:
    """Of distributions over the candidates."""
    finite = jnp.where(mask, log_probability, 0.0)  # 0 times infinity would be NaN, in the gradient too
    return -jnp.sum(jnp.where(mask, jnp.exp(finite), 0.0) * finite, axis=-1)


def clipped_objective(
    ratio: Float[Array, " b"], advantage: Float[Array, " b"], clip: float
) -> Float[Array, " b"]:
    """min(r A, clip(r, 1 - c, 1 + c) A): beyond the clip a ratio gains nothing more, but may still lose."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage)


def loss(networks: ActorCritic, batch: Transitions, settings: PolicyGradient) -> Float[Array, ""]:
    """The loss that an update lowers: clipped objective, value error, less entropy."""
    of_candidates = log_probabilities(networks.policy(batch.inputs), batch.mask)
    chosen = jnp.take_along_axis(of_candidates, batch.choice[:, None], axis=1)[:, 0]
    deviation = jnp.std(batch.advantage)
    # Advantages that are all equal say nothing; they are no reason to divide by zero.
    advantage = (batch.advantage - jnp.mean(batch.advantage)) / jnp.where(deviation > 0.0, deviation, 1.0)
    gain = clipped_objective(jnp.exp(chosen - batch.log_probability), advantage, settings.clip)
    value_error = (networks.value(batch.time) - batch.target) ** 2
    return (
        settings.value_weight * jnp.mean(value_error)
        - jnp.mean(gain)
        - settings.entropy_weight * jnp.mean(entropy(of_candidates, batch.mask))
    )


def improve(
    networks: ActorCritic,
    optimizer_state: optax.OptState,
    batch: Transitions,
    key: PRNGKeyArray,
    settings: PolicyGradient,
) -> tuple[ActorCritic, optax.OptState]:
    """The updates of one iteration: every epoch goes through the batch once, in minibatches drawn anew."""
    optimizer = optax.adam(settings.learning_rate)
    count = batch.choice.shape[0]

    def shuffled(key: PRNGKeyArray) -> Array:
        return jax.random.permutation(key, count).reshape(-1, settings.minibatch)

    rows = jnp.concatenate(jax.vmap(shuffled)(jax.random.split(key, settings.epochs)))

    def update(carry: tuple[Any, Any], rows: Array) -> tuple[tuple[Any, Any], None]:
        networks, state = carry
        gradient = jax.grad(loss)(networks, jax.tree.map(lambda leaf: leaf[rows], batch), settings)
        updates, state = optimizer.update(gradient, state, networks)
        return (optax.apply_updates(networks, updates), state), None

    (networks, optimizer_state), _ = lax.scan(update, (networks, optimizer_state), rows)
    return networks, optimizer_state
