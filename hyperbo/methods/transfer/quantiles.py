"""The Gaussian-copula transform of a task's values, and their distribution as a function of the input.

Salinas, Shen and Perrone, "A quantile-based approach for hyperparameter transfer learning", ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float, Int

from hyperbo.compute.parallel import batched, pad_batch, unstack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import pad_pairs
from hyperbo.errors import InvalidInputError, NumericalError, require_positive
from hyperbo.gp.gaussian_process import MLP, initialise_mlp
from hyperbo.gp.numerics import double_precision, softplus
from hyperbo.pretrain.jobs import Job, Progress, all_trained, check_jobs

# Of the transformed values, whose deviation is about 1.
SMALLEST_DEVIATION = 1e-3


def normal_scores(y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, " n"]:
    r"""The Gaussian-copula transform z = psi(y) of the values in the mask; 0 outside.

    .. math:: \psi(y) = \Phi^{-1}(\min(\max(F(y), \delta), 1 - \delta)), \qquad
              \delta = \frac{1}{4 n^{1/4} \sqrt{\pi \ln n}}

    F is the share of values that are at most y. One value alone has z = 0.

    >>> with jax.enable_x64(True):
    ...     z = normal_scores(jnp.array([7.0, 1.0, 3.0]), jnp.ones(3, bool))
    >>> np.asarray(z).argsort().tolist()
    [1, 2, 0]
    """
    count = jnp.maximum(jnp.sum(mask), 1).astype(y.dtype)
    share = jnp.sum((y[None, :] <= y[:, None]) & mask, axis=1) / count
    spread = jnp.sqrt(jnp.sqrt(count)) * jnp.sqrt(math.pi * jnp.log(jnp.maximum(count, 2.0)))
    cut = jnp.where(count > 1.0, 0.25 / spread, 0.5)
    return jnp.where(mask, ndtri(jnp.clip(share, cut, 1.0 - cut)), 0.0)


@dataclass(frozen=True)
class QuantileTraining:
    """How the distribution of transformed values is learned from all training tasks.

    Attributes:
      hidden: sizes of the tanh layers, as in the publication, which adds dropout.
      learning_rates: of Adam, one after the other.
      steps: with each of them.
      batch: observations in a step, drawn uniformly from all tasks.
    """

    hidden: tuple[int, ...] = (50, 50, 50)
    learning_rates: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    steps: int = 1000
    batch: int = 64

    def __post_init__(self) -> None:
        require_positive(self, "steps", "batch")
        if not self.hidden or min(self.hidden) < 1:
            raise InvalidInputError(f"hidden = {self.hidden}", where="QuantileTraining", fix="give a layer")
        if not self.learning_rates or not all(0.0 < rate < math.inf for rate in self.learning_rates):
            raise InvalidInputError(
                f"learning_rates = {self.learning_rates}", where="QuantileTraining", fix="give positive ones"
            )


@pytree
class Quantiles:
    """N(m(x), s(x)^2) of the transformed value at an input.

    Attributes:
      features: a network.
      weights: of m and of the unconstrained s, on the features.
      biases: likewise.
    """

    features: MLP
    weights: Float[Array, "e 2"]
    biases: Float[Array, " 2"]

    def __call__(self, x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Mean and standard deviation at inputs."""
        outputs = self.features(x) @ self.weights + self.biases
        return outputs[:, 0], softplus(outputs[:, 1]) + SMALLEST_DEVIATION


def quantile_loss(model: Quantiles, x: Float[Array, "n d"], z: Float[Array, " n"]) -> Float[Array, ""]:
    r"""Mean negative log density of transformed values, up to a constant.

    .. math:: \tfrac1n \sum_i \ln s(x_i) + \frac{(z_i - m(x_i))^2}{2 s(x_i)^2}
    """
    mean, deviation = model(x)
    return jnp.mean(jnp.log(deviation) + 0.5 * ((z - mean) / deviation) ** 2)


@double_precision
def fit_quantiles(training: QuantileTraining, jobs: Sequence[Job], progress: Progress) -> list[Quantiles]:
    """Learn one distribution for each job, all jobs as one batch.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
      TrainingError: a job's parameters are not finite; what the other jobs learned comes with the error.
    """
    check_jobs(jobs)
    progress(0, 1)
    pairs = []
    for job in jobs:
        z = [np.asarray(_scores(task.y)) for task in job.training.tasks]
        pairs.append((np.concatenate([task.x for task in job.training.tasks]), np.concatenate(z)))
    padded = pad_pairs(pairs)
    seeds = np.array([job.seed for job in jobs])
    arrays = pad_batch((seeds, padded.x, padded.y, padded.mask.sum(axis=1)))
    learned = unstack(batched(partial(_learn, training))(*arrays), len(jobs))
    progress(1, 1)
    return all_trained([_usable(job, model) for job, model in zip(jobs, learned, strict=True)])


@jax.jit
def _scores(y: Float[Array, " n"]) -> Float[Array, " n"]:
    return normal_scores(y, jnp.ones(len(y), bool))


def _learn(
    training: QuantileTraining,
    seed: Int[Array, ""],
    x: Float[Array, "n d"],
    z: Float[Array, " n"],
    count: Int[Array, ""],
) -> Quantiles:
    """The model of one job, of whose rows the first `count` are observations."""
    network_key, head_key, drawing_key = jax.random.split(jax.random.key(seed), 3)
    width = training.hidden[-1]
    weights = jax.random.normal(head_key, (width, 2), x.dtype) / math.sqrt(width)
    model: Any = Quantiles(
        initialise_mlp(network_key, x.shape[1], training.hidden), weights, jnp.zeros(2, x.dtype)
    )
    rates = jnp.repeat(jnp.array(training.learning_rates, x.dtype), training.steps)
    optimizer = optax.scale_by_adam()

    def step(carry: tuple[Any, Any], at: tuple[Array, Array]) -> tuple[tuple[Any, Any], None]:
        model, state = carry
        number, rate = at
        rows = jax.random.randint(jax.random.fold_in(drawing_key, number), (training.batch,), 0, count)
        gradient = jax.grad(quantile_loss)(model, x[rows], z[rows])
        updates, state = optimizer.update(gradient, state, model)
        return (jax.tree.map(lambda leaf, move: leaf - rate * move, model, updates), state), None

    (model, _), _ = lax.scan(step, (model, optimizer.init(model)), (jnp.arange(len(rates)), rates))
    return model


def _usable(job: Job, model: Quantiles) -> Quantiles | NumericalError:
    if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(model)):
        return model
    return NumericalError(
        f"the distribution of values on {job.training.provenance.dataset} with seed {job.seed} has "
        "parameters that are not finite; lower the learning rates"
    )
