"""Training runs: a whole block of hyperparameter points as one compiled program."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Float64, Int

from pipelines.collect.datasets import Split, TaskDataset
from pipelines.collect.models import Model, Parameters, Statistics
from pipelines.collect.optimization import batch_order, learning_rates, nesterov_step

EVALUATION_CHUNK = 100
TRAIN_EVALUATED = 200
# Weights, their velocities, and the running statistics of normalised features.
_Network = tuple[Parameters, Parameters, Statistics]


@dataclass(frozen=True)
class TrainingSettings:
    """What is fixed for all trials of a task.

    Attributes:
      batch_size: examples of one step.
      steps: training steps in all, T of Eq. (lr-schedule).
      evaluations: how often the metrics are taken, at equal distances, the last time after the last step.
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
      train_cost: mean of the minibatch costs since the evaluation before.
      metrics: `<split>/ce_loss` and `<split>/error_rate`; NaN from divergence on.
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

    A trial has diverged when its cost became NaN at a minibatch, or on the training set at an evaluation
    (weights that overflow in the very last step show only there). An infinite cost alone is no divergence.
    A trial's result does not depend on the others of its block, nor on its place among them.

    Args:
      model: the network.
      dataset: what it is trained on; of the model's kind.
      settings: what is fixed for all trials.
      block_size: number of trials of every block; it is compiled for, once.
    """

    def __init__(
        self, model: Model, dataset: TaskDataset, settings: TrainingSettings, block_size: int
    ) -> None:
        self._settings = settings
        self._counts = {name: split.labels.size for name, split in _evaluated(dataset).items()}
        rates = jax.ShapeDtypeStruct((block_size, settings.steps), jnp.float32)
        momentum = jax.ShapeDtypeStruct((block_size,), jnp.float32)
        # Float32 also in a process that has switched to float64 for the sake of its covariances.
        with jax.enable_x64(False):
            trials = jax.jit(jax.vmap(_trial_program(model, dataset, settings)))
            self._program = trials.lower(rates, momentum).compile()

    def train(self, hyperparameters: Float64[np.ndarray, "p 4"]) -> Curves:
        """Train a block of trials.

        Args:
          hyperparameters: raw values in the order of `PD1_SEARCH_SPACE`, a row per trial.
        """
        initial, power, momentum, factor = hyperparameters.T
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
                # Divided here, for XLA would multiply by a rounded reciprocal: 0.516 comes out as 0.516.
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
        if settings.l2 == 0.0:  # zero times a penalty that overflowed would be NaN: divergence that is none
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
    """The examples that metrics are taken on: of the training set, a part says how well it is fitted."""
    part = Split(dataset.train.inputs[:TRAIN_EVALUATED], dataset.train.labels[:TRAIN_EVALUATED])
    return {"train": part, "valid": dataset.valid, "test": dataset.test}


def _evaluation(model: Model, split: Split) -> Callable[[Parameters, Statistics], tuple[Array, Array]]:
    """Summed cross-entropy and number of errors over a split, a chunk of its examples at a time."""
    chunks = -(-len(split) // EVALUATION_CHUNK)
    padding = chunks * EVALUATION_CHUNK - len(split)

    def cut(array: np.ndarray) -> np.ndarray:
        padded = np.concatenate([array, np.repeat(array[:1], padding, axis=0)])
        return padded.reshape(chunks, EVALUATION_CHUNK, *array.shape[1:])

    # Padded examples count for nothing.
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
        # The argmax of NaN logits means nothing.
        return loss, jnp.where(jnp.isnan(loss), jnp.nan, errors)

    return evaluate
