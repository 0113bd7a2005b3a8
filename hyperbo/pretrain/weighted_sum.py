"""Pre-training by a weighted sum of objectives: L-BFGS on all points and all matched inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from hyperbo.compute.checkpoints import CheckpointFolder
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import MatchedBlock
from hyperbo.errors import InvalidInputError
from hyperbo.gp.estimate import Estimator
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.moments import as_inputs, check_factorised
from hyperbo.gp.numerics import double_precision
from hyperbo.objectives.distances import squared_euclidean, squared_wasserstein
from hyperbo.objectives.nll import normalised_weights, padded_arrays, task_nll
from hyperbo.pretrain.ekl import BlocksOfModel, blocks_of_jobs, mean_ekl_minimised, stack_blocks
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, no_progress
from hyperbo.pretrain.lbfgs import LBFGSTraining, pretrain_lbfgs
from hyperbo.pretrain.task_table import TaskTable, tasks_of_jobs

_DISTANCES = {"squared_euclidean": squared_euclidean, "squared_wasserstein": squared_wasserstein}
_TERMS = ("ekl", "nll", *_DISTANCES)


@dataclass(frozen=True)
class SumTraining(LBFGSTraining):
    """L-BFGS on a weighted sum; by default the paper's online objective, EKL + 0.1 NLL.

    Attributes:
      ekl: weight of EKL averaged over matched blocks, Eq. 8 (multi-kl), the part that is minimised.
      nll: weight of NLL averaged over tasks by their weights, Eq. 13 (nll), on all of their points.
      squared_euclidean: weight of that distance, averaged over matched blocks; an extension.
      squared_wasserstein: likewise.
      estimator: of the covariance over tasks.
    """

    ekl: float = 1.0
    nll: float = 0.1
    squared_euclidean: float = 0.0
    squared_wasserstein: float = 0.0
    estimator: Estimator = "mle"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = {name: getattr(self, name) for name in _TERMS}
        if not all(0.0 <= weight < math.inf for weight in weights.values()) or not any(weights.values()):
            raise InvalidInputError(
                f"weights {weights}", where="SumTraining", fix="none negative, not all 0, all finite"
            )

    @property
    def needs_blocks(self) -> bool:
        """Whether a term other than the NLL has a weight."""
        return any(getattr(self, name) > 0.0 for name in _TERMS if name != "nll")


@pytree
class _Own:
    """A model's data: of its tasks and of its blocks, where their terms have a weight."""

    rows: Int[Array, "*jobs t"] | None
    task_weights: Float[Array, "*jobs t"] | None
    blocks: BlocksOfModel | None


def _weighted_sum(
    training: SumTraining, gp: GaussianProcess, table: TaskTable | None, own: _Own
) -> tuple[Array, Array]:
    """The sum, and the largest jitter; a term of weight 0 is not computed."""
    terms, jitters = [], [jnp.zeros(())]
    if table is not None and own.rows is not None and own.task_weights is not None:
        points = (table.x[own.rows], table.y[own.rows], table.mask[own.rows])
        values, jitter = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, *points)
        terms.append(training.nll * (own.task_weights @ values))
        jitters.append(jnp.max(jitter))
    if own.blocks is not None:
        if training.ekl > 0.0:
            value, jitter = mean_ekl_minimised(gp, own.blocks)
            terms.append(training.ekl * value)
            jitters.append(jitter)
        for name, distance in _DISTANCES.items():
            if getattr(training, name) > 0.0:
                values = jax.vmap(distance, in_axes=(None, 0))(gp, own.blocks.estimates)
                terms.append(getattr(training, name) * (own.blocks.weights @ values))
    return sum(terms[1:], terms[0]), jnp.max(jnp.stack(jitters))


@double_precision
def pretrain_sum(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: SumTraining,
    progress: Progress = no_progress,
    checkpoint: CheckpointFolder | None = None,
) -> list[Pretrained]:
    """Pre-train one model per job by a weighted sum of objectives.

    Args:
      jobs: training sets and seeds, with task weights for the NLL.
      architecture: structure of every model.
      training: weights of the objectives, and settings of the optimiser.
      progress: called with iterations done and in all.
      checkpoint: as in `pretrain_nll`.

    Raises:
      InvalidInputError: there is no job, one lacks matched data that a term needs, or search spaces differ.
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    check_jobs(jobs)
    started = time.perf_counter()
    table: TaskTable | None = None
    rows = weights = blocks = None
    if training.nll > 0.0:
        tasks = tasks_of_jobs(jobs)
        table, rows = tasks.table, jnp.asarray(tasks.rows)
        weights = jnp.asarray(tasks.weights / tasks.counts[:, None])
    if training.needs_blocks:
        blocks = blocks_of_jobs(jobs, training.estimator)

    own, objective = _Own(rows, weights, blocks), partial(_weighted_sum, training)
    return pretrain_lbfgs(jobs, architecture, training, objective, table, own, started, progress, checkpoint)


@double_precision
def weighted_objective(
    gp: GaussianProcess,
    tasks: Sequence[tuple[ArrayLike, ArrayLike]] = (),
    blocks: Sequence[tuple[ArrayLike, ArrayLike]] = (),
    weights: SumTraining | None = None,
    task_weights: Sequence[float] | None = None,
) -> float:
    """The weighted sum that `pretrain_sum` minimises, of a model on plain arrays.

    Args:
      gp: model.
      tasks: inputs of shape (M, d) and observations of shape (M,) of each task, for the NLL.
      blocks: inputs of shape (M, d) and observations of shape (M, N), one column per task, of each matched
        block, for the other terms.
      weights: of the terms, and the estimator; None: those of `SumTraining()`, EKL + 0.1 NLL.
      task_weights: of the NLLs, as in `hyperbo.objectives.mean_nll`.

    Returns:
      The sum, computed in float64 whatever the default precision of JAX. Its EKL is the part that is
      minimised, `hyperbo.objectives.ekl.ekl_minimised`.

    Raises:
      InvalidInputError: a term of positive weight has no data, arrays do not fit each other, or a value is
        not finite.
      NumericalError: a covariance of observations is not positive definite.

    >>> from hyperbo.objectives import mean_nll
    >>> gp, x = GaussianProcess.from_values(lengthscales=[1.0]), [[0.0], [0.5]]
    >>> block = (x, [[0.1, 0.4], [0.2, 0.0]])
    >>> tasks = [(x, [0.1, 0.2]), (x, [0.4, 0.0])]
    >>> bool(np.isclose(weighted_objective(gp, tasks, [block]), 1.1 * mean_nll(gp, tasks)))
    True
    """
    training = SumTraining() if weights is None else weights
    table: TaskTable | None = None
    rows = of_tasks = stacked = None
    if training.nll > 0.0:
        padded = padded_arrays(gp, tasks)
        arrays = (padded.x, padded.y, padded.mask, padded.mask.sum(axis=1))
        table, rows = TaskTable(*map(jnp.asarray, arrays)), jnp.arange(len(tasks))
        of_tasks = jnp.asarray(normalised_weights(task_weights, len(tasks)))
    if training.needs_blocks:
        of_model = stack_blocks([_plain_blocks(gp, blocks)], training.estimator)
        stacked = jax.tree.map(lambda leaf: leaf[0], of_model)
    value, jitter = _jitted_sum(training, gp, table, _Own(rows, of_tasks, stacked))
    check_factorised(np.asarray(value), float(jitter))
    return float(value)


_jitted_sum = jax.jit(_weighted_sum, static_argnums=0)


def _plain_blocks(gp: GaussianProcess, blocks: Sequence[tuple[ArrayLike, ArrayLike]]) -> list[MatchedBlock]:
    if not blocks:
        raise InvalidInputError(
            "there is no matched block", fix="give one, or EKL and the distances the weight 0"
        )
    pairs = [(as_inputs(gp, x), np.asarray(y, np.float64)) for x, y in blocks]
    for number, (x, y) in enumerate(pairs):
        if y.ndim != 2 or len(y) != len(x):
            raise InvalidInputError(
                f"y has the shape {y.shape} for {len(x)} inputs",
                where=f"matched block {number}",
                fix="give one row per input, one column per task",
            )
    return [MatchedBlock(tuple(map(str, range(y.shape[1]))), x, y) for x, y in pairs]
