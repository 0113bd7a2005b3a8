"""Pre-training by EKL: the matched blocks of the jobs, and L-BFGS on all of their inputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperbo.compute.checkpoints import CheckpointFolder
from hyperbo.compute.parallel import stack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import MatchedBlock, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.gp.estimate import Estimator, MatchedEstimate, matched_estimate
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.objectives.ekl import ekl_minimised
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, no_progress
from hyperbo.pretrain.lbfgs import LBFGSTraining, pretrain_lbfgs


def training_blocks(training: TuningData) -> list[MatchedBlock]:
    """The matched blocks that EKL trains on: at least two tasks, only inputs that diverged on none.

    Raises:
      InvalidInputError: nothing matched is left.
    """
    usable = list(training.complete_blocks)
    if not usable:
        raise InvalidInputError(
            "no matched input that diverged on none of the training tasks",
            where=training.provenance.dataset,
            fix="train by NLL, which needs no matched data",
        )
    return usable


@pytree
class BlocksOfModel:
    """One model's blocks, stacked, or those of all, stacked once more.

    Each of a job's Q blocks has the weight 1/Q, for the average of Eq. 8 (multi-kl); a job with fewer blocks
    repeats its first one at weight zero.
    """

    estimates: MatchedEstimate
    weights: Float[Array, "*jobs q"]


def blocks_of_jobs(jobs: Sequence[Job], estimator: Estimator) -> BlocksOfModel:
    """Estimate the Gaussians of all jobs' blocks.

    Raises:
      InvalidInputError: a job has no matched data.
    """
    return stack_blocks([training_blocks(job.training) for job in jobs], estimator)


def stack_blocks(blocks: Sequence[list[MatchedBlock]], estimator: Estimator) -> BlocksOfModel:
    """Estimate the Gaussians of the complete blocks of each job, and pad them to one shape."""
    most = max(map(len, blocks))
    inputs = max(len(block.x) for of_job in blocks for block in of_job)
    columns = max(len(block.tasks) for of_job in blocks for block in of_job)
    estimates = [
        matched_estimate(block, inputs, columns, estimator)
        for of_job in blocks
        for block in of_job + of_job[:1] * (most - len(of_job))
    ]
    stacked = jax.tree.map(lambda leaf: leaf.reshape(len(blocks), most, *leaf.shape[1:]), stack(estimates))
    weights = np.array([[(q < len(b)) / len(b) for q in range(most)] for b in blocks])
    return BlocksOfModel(stacked, jnp.asarray(weights))


@dataclass(frozen=True)
class EKLTraining(LBFGSTraining):
    """L-BFGS on all matched inputs, section 7.2 "Description of All Compared Methods", H-EKL.

    Attributes:
      estimator: of the covariance over tasks.
    """

    estimator: Estimator = "mle"


def mean_ekl_minimised(gp: GaussianProcess, blocks: BlocksOfModel) -> tuple[Array, Array]:
    """The part of EKL that is minimised, averaged over blocks, Eq. 8 (multi-kl), and the largest jitter."""
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
    """Pre-train one model per job by EKL averaged over its matched blocks, Eq. 8 (multi-kl).

    Args:
      jobs: training sets and seeds; task weights do not apply.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called with iterations done and in all.
      checkpoint: as in `pretrain_nll`.

    Raises:
      InvalidInputError: there is no job, one has no matched data, or their search spaces differ.
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    check_jobs(jobs)
    started = time.perf_counter()

    def loss(gp: GaussianProcess, shared: None, blocks: BlocksOfModel) -> tuple[Array, Array]:
        return mean_ekl_minimised(gp, blocks)

    blocks = blocks_of_jobs(jobs, training.estimator)
    return pretrain_lbfgs(jobs, architecture, training, loss, None, blocks, started, progress, checkpoint)
