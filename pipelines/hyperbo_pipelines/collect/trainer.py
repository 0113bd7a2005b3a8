"""Training runs: a block of hyperparameter points as one compiled program, with PD1's optimiser."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Float64, Int, Int32

from hyperbo_pipelines.collect.datasets import Split, TaskDataset
from hyperbo_pipelines.collect.models import Model, Parameters, Statistics

EVALUATION_CHUNK = 100
TRAIN_EVALUATED = 200
END_FACTOR = 1e-3

# Weights, their velocities, and the running statistics of normalised features.
_Network = tuple[Parameters, Parameters, Statistics]


@dataclass(frozen=True)
class TrainingSettings:
    """What is fixed for all trials of a task.

    Attributes:
      batch_size: examples of one step.
      steps: number of training steps, T of Eq. 25 (lr-schedule).
      evaluations: how often the metrics are computed, at equal distances, the last time after the last step.
      l2: weight of the penalty |w|^2 / 2 on weight matrices, a part of the training cost.
      seed: of the initial weights and of the order of the examples: the same for all trials.
    """

    batch_size: int
    steps: int
    evaluations: int
    l2: float
    seed: int


@dataclass(frozen=True)
class Curves:
    """Results of a block of trials; a row per trial, a column per evaluation.

    Attributes:
      diverged: whether the training cost became NaN.
      learning_rate: of the last step before the evaluation.
      train_cost: mean of the minibatch costs since the previous evaluation.
      metrics: `<split>/ce_loss` and `<split>/error_rate`; NaN after divergence.
      seconds: wall time of the block, compilation aside.
    """

    diverged: Bool[np.ndarray, " p"]
    learning_rate: Float32[np.ndarray, "p e"]
    train_cost: Float32[np.ndarray, "p e"]
    metrics: dict[str, Float32[np.ndarray, "p e"]]
    seconds: float


def cross_entropy(logits: Float[Array, "*n k"], labels: Int[Array, "*n"]) -> Float[Array, "*n"]:
    """Negative log probability of each label."""
    # A one-hot product instead of indexing: the gradient of indexing is a scatter, slow on CPUs.
    chosen = jnp.sum(logits * jax.nn.one_hot(labels, logits.shape[-1]), axis=-1)
    return jax.nn.logsumexp(logits, axis=-1) - chosen


class Trainer:
    """Trains blocks of trials of one task, a trial per row of hyperparameters.

    A trial has diverged if its cost becomes NaN at a minibatch, or at an evaluation on the training set (an
    overflow in the very last step shows only there). An infinite cost alone is no divergence.
    A trial's result does not depend on the others of its block, nor on its place among them.

    Args:
      model: the network.
      dataset: what it is trained on; of the model's kind.
      settings: what is fixed for all trials.
      block_size: number of trials of every block; one program is compiled for this number.
    """

    def __init__(
        self, model: Model, dataset: TaskDataset, settings: TrainingSettings, block_size: int
    ) -> None:
        self._settings, self._block_size = settings, block_size
        self._counts = {name: split.labels.size for name, split in _evaluated(dataset).items()}
        rates = jax.ShapeDtypeStruct((block_size, settings.steps), jnp.float32)
        momentum = jax.ShapeDtypeStruct((block_size,), jnp.float32)
        # Float32 also in a process that uses float64 for covariances.
        with jax.enable_x64(False):
            trials = jax.jit(jax.vmap(_trial_program(model, dataset, settings)))
            self._program = trials.lower(rates, momentum).compile()

    def train(self, hyperparameters: Float64[np.ndarray, "p 4"]) -> Curves:
        """Train a trial for each row of raw values, in the order of `PD1_SEARCH_SPACE`.

        A short block is padded; the results after the last row are those of the padding.
        """
        padding = np.repeat(hyperparameters[:1], self._block_size - len(hyperparameters), axis=0)
        initial, power, momentum, factor = np.concatenate([hyperparameters, padding]).T
        settings = self._settings
        rates = learning_rates(initial, power, factor, settings.steps).astype(np.float32)
        started = time.perf_counter()
        with jax.enable_x64(False):
            diverged, train_cost, metrics = jax.block_until_ready(
                self._program(rates, momentum.astype(np.float32))
            )
        seconds = time.perf_counter() - started
        interval = settings.steps // settings.evaluations
        return Curves(
            np.asarray(diverged),
            rates[:, interval - 1 :: interval],
            np.asarray(train_cost),
            {
                # Divided here: XLA would multiply by a rounded reciprocal, and 0.516 would not be 0.516.
                f"{name}/{metric}": np.asarray(metrics[f"{name}/{result}"]) / np.float32(count)
                for name, count in self._counts.items()
                for metric, result in (("ce_loss", "loss"), ("error_rate", "errors"))
            },
            seconds,
        )


def _trial_program(
    model: Model, dataset: TaskDataset, settings: TrainingSettings
) -> Callable[[Array, Array], tuple[Array, Array, dict[str, Array]]]:
    """One training run as a function of its learning rates and momentum."""
    train_inputs, train_labels = jnp.asarray(dataset.train.inputs), jnp.asarray(dataset.train.labels)
    order = batch_order(len(dataset.train), settings.batch_size, settings.steps, settings.seed)
    by_interval = order.reshape(settings.evaluations, -1, settings.batch_size)
    start = model.init(np.random.default_rng(settings.seed), dataset)
    evaluations = {name: _evaluation(model, split) for name, split in _evaluated(dataset).items()}

    def cost(
        parameters: Parameters, statistics: Statistics, batch: Int[Array, " b"]
    ) -> tuple[Float[Array, ""], Statistics]:
        logits, statistics = model.apply(parameters, statistics, train_inputs[batch], True)
        loss = cross_entropy(logits, train_labels[batch]).mean()
        if settings.l2 == 0.0:  # zero times an overflowed penalty would be NaN, a false divergence
            return loss, statistics
        squares = [jnp.sum(w * w) for name, w in parameters.items() if name.endswith("/w")]
        return loss + settings.l2 / 2 * jnp.stack(squares).sum(), statistics

    def trial(rates: Float[Array, " t"], momentum: Float[Array, ""]) -> tuple[Array, Array, dict[str, Array]]:
        def step(network: _Network, now: tuple[Array, Array]) -> tuple[_Network, Array]:
            parameters, velocity, statistics = network
            batch, rate = now
            (value, statistics), gradient = jax.value_and_grad(cost, has_aux=True)(
                parameters, statistics, batch
            )
            parameters, velocity = nesterov_step(parameters, velocity, gradient, rate, momentum)
            return (parameters, velocity, statistics), value

        def interval(
            state: tuple[_Network, Array], now: tuple[Array, Array]
        ) -> tuple[tuple[_Network, Array], tuple[Array, dict[str, Array]]]:
            network, diverged = state
            network, costs = jax.lax.scan(step, network, now)
            parameters, _, statistics = network
            metrics: dict[str, Array] = {}
            for name, evaluate in evaluations.items():
                metrics[f"{name}/loss"], metrics[f"{name}/errors"] = evaluate(parameters, statistics)
            diverged |= jnp.isnan(costs).any() | jnp.isnan(metrics["train/loss"])
            metrics = {name: jnp.where(diverged, jnp.nan, value) for name, value in metrics.items()}
            train_cost = jnp.where(diverged, jnp.nan, costs.mean())
            return (network, diverged), (train_cost, metrics)

        still = jax.tree.map(jnp.zeros_like, start.parameters)
        network = (start.parameters, still, start.statistics)
        schedule = (jnp.asarray(by_interval), rates.reshape(settings.evaluations, -1))
        (_, diverged), (train_cost, metrics) = jax.lax.scan(interval, (network, jnp.asarray(False)), schedule)
        return diverged, train_cost, metrics

    return trial


def _evaluated(dataset: TaskDataset) -> dict[str, Split]:
    """The examples that metrics are computed on: a part of the training set, and all of the others."""
    part = Split(dataset.train.inputs[:TRAIN_EVALUATED], dataset.train.labels[:TRAIN_EVALUATED])
    return {"train": part, "valid": dataset.valid, "test": dataset.test}


def _evaluation(model: Model, split: Split) -> Callable[[Parameters, Statistics], tuple[Array, Array]]:
    """Summed cross-entropy and number of errors over a split, a chunk of its examples at a time."""
    chunks = -(-len(split) // EVALUATION_CHUNK)
    padding = chunks * EVALUATION_CHUNK - len(split)

    def cut(array: np.ndarray) -> np.ndarray:
        padded = np.concatenate([array, np.repeat(array[:1], padding, axis=0)])
        return padded.reshape(chunks, EVALUATION_CHUNK, *array.shape[1:])

    # Padding does not count.
    counted = cut(np.ones(len(split), bool))
    counted.reshape(-1)[len(split) :] = False
    chunked = (jnp.asarray(cut(split.inputs)), jnp.asarray(cut(split.labels)), jnp.asarray(counted))

    def evaluate(parameters: Parameters, statistics: Statistics) -> tuple[Array, Array]:
        def chunk(examples: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            inputs, labels, mask = examples
            logits, _ = model.apply(parameters, statistics, inputs, False)
            mask = mask.reshape(-1, *[1] * (labels.ndim - 1))
            losses = jnp.where(mask, cross_entropy(logits, labels), 0.0)
            wrong = mask & (logits.argmax(axis=-1) != labels)
            return losses.sum(), wrong.sum()

        losses, wrong = jax.lax.map(chunk, chunked)
        loss, errors = losses.sum(), wrong.sum().astype(jnp.float32)
        # The argmax of NaN logits has no meaning.
        return loss, jnp.where(jnp.isnan(loss), jnp.nan, errors)

    return evaluate


def learning_rates(
    initial: Float64[np.ndarray, " p"],
    power: Float64[np.ndarray, " p"],
    decay_steps_factor: Float64[np.ndarray, " p"],
    steps: int,
) -> Float64[np.ndarray, "p t"]:
    """Polynomial decay to a thousandth of the initial learning rate, Eq. 25 (lr-schedule).

        eta_t = eta / 1000 + (eta - eta / 1000) (1 - min(t, lambda T) / (lambda T))^p

    Args:
      initial: eta.
      power: p.
      decay_steps_factor: lambda, the share of the training during which the rate decays.
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
