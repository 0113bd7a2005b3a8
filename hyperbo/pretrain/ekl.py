"""Pre-training by EKL: L-BFGS on all matched inputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.objectives import Estimator, ekl_minimised
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, no_progress
from hyperbo.pretrain.lbfgs import LBFGSTraining, pretrain_lbfgs
from hyperbo.pretrain.matched import BlocksOfModel, blocks_of_jobs


@dataclass(frozen=True)
class EKLTraining(LBFGSTraining):
    """L-BFGS on all matched inputs, section "Description of All Compared Methods", H-EKL.

    Attributes:
      estimator: of the covariance over tasks.
    """

    estimator: Estimator = "mle"


def mean_ekl_minimised(gp: GaussianProcess, blocks: BlocksOfModel) -> tuple[Array, Array]:
    """The part of EKL that is minimised, averaged over blocks, Eq. (multi-kl), and the largest jitter."""
    values, jitters = jax.vmap(ekl_minimised, in_axes=(None, 0))(gp, blocks.estimates)
    return blocks.weights @ values, jnp.max(jitters)


@double_precision
def pretrain_ekl(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: EKLTraining,
    progress: Progress = no_progress,
    checkpoint: CheckpointFolder | None = None,
) -> list[Pretrained]:
    """Pre-train one model per job by EKL averaged over its matched blocks, Eq. (multi-kl).

    Args:
      jobs: training sets and seeds; task weights do not apply.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called with iterations done and in all.
      checkpoint: where to go on from and to leave checkpoints; the result is that of a training which was
        never interrupted, to the last bit.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, one has no matched data, or their search spaces differ.
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    check_jobs(jobs)
    started = time.perf_counter()

    def objective(gp: GaussianProcess, shared: None, blocks: BlocksOfModel) -> tuple[Array, Array]:
        return mean_ekl_minimised(gp, blocks)

    blocks = blocks_of_jobs(jobs, training.estimator)
    return pretrain_lbfgs(
        jobs, architecture, training, objective, None, blocks, started, progress, checkpoint
    )
