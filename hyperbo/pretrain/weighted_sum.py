"""Pre-training by a weighted sum of objectives: L-BFGS on all points and all matched inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import Estimator, squared_euclidean, squared_wasserstein, task_nll
from hyperbo.pretrain.ekl import mean_ekl_minimised
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, no_progress
from hyperbo.pretrain.lbfgs import LBFGSTraining, pretrain_lbfgs
from hyperbo.pretrain.matched import BlocksOfModel, blocks_of_jobs
from hyperbo.pretrain.task_table import TaskTable, tasks_of_jobs

_DISTANCES = {"squared_euclidean": squared_euclidean, "squared_wasserstein": squared_wasserstein}
_TERMS = ("ekl", "nll", *_DISTANCES)


@dataclass(frozen=True)
class SumTraining(LBFGSTraining):
    """L-BFGS on a weighted sum; by default the paper's online objective, EKL + 0.1 NLL.

    Attributes:
      ekl: weight of EKL averaged over matched blocks, Eq. (multi-kl), the part that is minimised.
      nll: weight of NLL averaged over tasks by their weights, Eq. (nll), on all of their points.
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
      checkpoint: where to go on from and to leave checkpoints; the result is that of a training which was
        never interrupted, to the last bit.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, one lacks the matched data that a term needs, or their search spaces
        differ.
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
    if any(getattr(training, name) > 0.0 for name in _TERMS if name != "nll"):
        blocks = blocks_of_jobs(jobs, training.estimator)

    def objective(gp: GaussianProcess, table: Any, own: Any) -> tuple[Array, Array]:
        return _weighted_sum(training, gp, table, own)

    own = _Own(rows, weights, blocks)
    return pretrain_lbfgs(jobs, architecture, training, objective, table, own, started, progress, checkpoint)
