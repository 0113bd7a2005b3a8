"""What MIMO and RFGP share: one regression model of all tasks, each task known to it by an embedding.

The multi-task set-up of Springenberg et al., "Bayesian Optimization with Robust Bayesian Neural Networks"
(NeurIPS 2016), as section 7.2 "Description of All Compared Methods" asks for it: a vector per task is learned
together with the model and concatenated to the input. Where the paper is silent:

- y is standardised by the mean and deviation of all training observations together: a task's own level, of
  which a new task tells nothing before its first observation, is for the embedding to express.
- Inputs are scaled to mean 0 and variance 1 under the uniform distribution on the unit cube; embeddings start
  as standard normal draws, so that tasks are about as far from each other as inputs are.
- The embedding of the test task starts at the mean of those of the training tasks, and is trained with
  everything else in each refit.
- Each refit goes on from the last one, optimizer included, over the training observations and the test
  task's. Before the first observation there is none: what `fit` left is what training without it gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.errors import require_positive
from hyperbo.methods.decision import AcquisitionDecision


@dataclass(frozen=True)
class MultiTaskTraining:
    """How a model of all tasks is trained, section 7.2 "Description of All Compared Methods", MIMO and RFGP.

    Attributes:
      epochs: passes over the training observations before the first choice.
      refit_epochs: passes over all observations before every other choice. The paper has 1000 in each
        iteration and does not say whether a refit starts anew.
      batch_size: observations per step.
      embedding_size: length of a task's embedding.
      max_points_per_task: observations of every training task, drawn with the job's seed; None: all. The
        paper's "-100" variants have 100.
    """

    epochs: int = 1000
    refit_epochs: int = 1000
    batch_size: int = 64
    embedding_size: int = 5
    max_points_per_task: int | None = None

    def __post_init__(self) -> None:
        names = ("epochs", "refit_epochs", "batch_size", "embedding_size")
        require_positive(self, *names, optional=("max_points_per_task",))


# What a surrogate learns, and what it draws once and keeps: pytrees of float32 arrays.
Parameters = Any
Constants = Any


@runtime_checkable
class Surrogate(Protocol):
    """A regression model trained by minibatches; a frozen dataclass of settings, hence fit to be compiled.

    Its inputs are those of `network_inputs`: it knows nothing of tasks.
    """

    @property
    def training(self) -> MultiTaskTraining:
        """How it is trained."""
        ...

    @property
    def learning_rate(self) -> float:
        """Of Adam."""
        ...

    @property
    def decision(self) -> AcquisitionDecision:
        """How candidates are chosen."""
        ...

    @property
    def draws(self) -> int:
        """Number of independent minibatches in a step."""
        ...

    def initialise(self, key: PRNGKeyArray, inputs: int) -> tuple[Parameters, Constants]:
        """Draw an untrained model with that number of inputs."""
        ...

    def loss(
        self,
        parameters: Parameters,
        constants: Constants,
        inputs: Float32[Array, "draws b i"],
        y: Float32[Array, "draws b"],
        mask: Bool[Array, " b"],
        count: Int32[Array, ""],
    ) -> Float32[Array, ""]:
        """The loss of a step: a mean over the rows of the mask; `count` is that of all observations."""
        ...

    def predict(
        self,
        parameters: Parameters,
        constants: Constants,
        inputs: Float32[Array, "n i"],
        y: Float32[Array, " n"],
        mask: Bool[Array, " n"],
        at: Float32[Array, "c i"],
    ) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
        """Mean and variance of an observation, noise included, given all observations."""
        ...


@pytree
class TaskObservations:
    """Observations of several tasks, or those of all jobs, stacked; rows outside the mask are padding."""

    x: Float32[Array, "*jobs n d"]
    y: Float32[Array, "*jobs n"]
    task: Int32[Array, "*jobs n"]
    mask: Bool[Array, "*jobs n"]


@pytree
class Model:
    """A surrogate in training; the optimizer is the state of Adam for embeddings and parameters, as one
    vector.

    Attributes:
      embeddings: one row per training task, then padding; the last is the test task's.
    """

    embeddings: Float32[Array, "t e"]
    parameters: Parameters
    constants: Constants
    optimizer: optax.OptState


def network_inputs(x: Float32[Array, "*n d"], embeddings: Float32[Array, "*n e"]) -> Float32[Array, "*n i"]:
    """Inputs scaled to variance 1 and, beside them, the embedding of each one's task.

    >>> network_inputs(jnp.array([[0.5]], jnp.float32), jnp.array([[2.0, 3.0]], jnp.float32)).tolist()
    [[0.0, 2.0, 3.0]]
    """
    return jnp.concatenate([(x - 0.5) * math.sqrt(12.0), embeddings], axis=-1)


def shuffled(
    key: PRNGKeyArray, mask: Bool[Array, " n"], draws: int, length: int
) -> Int32[Array, "draws length"]:
    """Independent uniform permutations of the rows of the mask, filled up to `length`.

    Every row has its own random number, whatever comes behind it: padding at the end changes nothing.
    """
    rows = jnp.arange(len(mask), dtype=jnp.uint64)

    def permutation(key: PRNGKeyArray) -> Int32[Array, " n"]:
        # One number to sort per row, 31 random bits before its own: six times as fast here as sorting pairs.
        last = jnp.asarray(2**31, jnp.uint32)
        random = jnp.where(mask, jax.random.bits(key, mask.shape, jnp.uint32) >> 1, last)
        ordered = jnp.sort(random.astype(jnp.uint64) << 32 | rows)
        return (ordered & jnp.iinfo(jnp.uint32).max).astype(jnp.int32)

    order = jax.vmap(permutation)(jax.random.split(key, draws))
    return jnp.pad(order, ((0, 0), (0, length - len(mask))))


def train(
    surrogate: Surrogate,
    observations: TaskObservations,
    model: Model,
    key: PRNGKeyArray,
    begin: Int[Array, ""],
    end: Int[Array, ""],
) -> Model:
    """Train embeddings and parameters by Adam on minibatches, from epoch `begin` up to epoch `end`.

    An epoch passes through all observations in a random order of its own; its last batch may be short.
    """
    optimizer = optax.adam(surrogate.learning_rate)
    size = surrogate.training.batch_size
    capacity = len(observations.mask)
    count = jnp.sum(observations.mask, dtype=jnp.int32)
    # One vector instead of many small arrays: a step has fewer and larger kernels, sooner compiled and run.
    trained, restore = ravel_pytree((model.embeddings, model.parameters))

    def epoch(number: Array, carry: tuple[Array, optax.OptState]) -> tuple[Array, optax.OptState]:
        order = shuffled(
            jax.random.fold_in(key, number), observations.mask, surrogate.draws, capacity + -capacity % size
        )

        def step(batch: Array, carry: tuple[Array, optax.OptState]) -> tuple[Array, optax.OptState]:
            trained, state = carry
            rows = lax.dynamic_slice_in_dim(order, batch * size, size, axis=1)
            mask = batch * size + jnp.arange(size, dtype=jnp.int32) < count

            def loss(trained: Float32[Array, " p"]) -> Float32[Array, ""]:
                embeddings, parameters = restore(trained)
                inputs = network_inputs(observations.x[rows], embeddings[observations.task[rows]])
                return surrogate.loss(parameters, model.constants, inputs, observations.y[rows], mask, count)

            updates, state = optimizer.update(jax.grad(loss)(trained), state, trained)
            # Optax's types do not know that the updates of an array are one.
            moved: Any = optax.apply_updates(trained, updates)
            return moved, state

        return lax.fori_loop(0, -(-count // size), step, carry)

    trained, state = lax.fori_loop(begin, end, epoch, (trained, model.optimizer))
    embeddings, parameters = restore(trained)
    return Model(embeddings, parameters, model.constants, state)
