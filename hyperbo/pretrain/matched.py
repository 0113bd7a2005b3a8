"""The matched data of jobs: which blocks are trained on, and their estimates as rectangles."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperbo.errors import InvalidInputError
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import Estimator, MatchedEstimate, matched_estimate
from hyperbo.pretrain.jobs import Job
from hyperbo.tuning_data import MatchedBlock, TuningData


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

    Attributes:
      estimates: of the blocks; a job with fewer blocks repeats its first one at weight zero.
      weights: 1/Q for each of a job's Q blocks: the average of Eq. (multi-kl).
    """

    estimates: MatchedEstimate
    weights: Float[Array, "*jobs q"]


def blocks_of_jobs(jobs: Sequence[Job], estimator: Estimator) -> BlocksOfModel:
    """Estimate the Gaussians of all jobs' blocks.

    Raises:
      InvalidInputError: a job has no matched data.
    """
    blocks = [training_blocks(job.training) for job in jobs]
    most = max(map(len, blocks))
    inputs = max(len(block.x) for of_job in blocks for block in of_job)
    columns = max(len(block.tasks) for of_job in blocks for block in of_job)
    estimates = [
        matched_estimate(block, inputs, columns, estimator)
        for of_job in blocks
        for block in of_job + of_job[:1] * (most - len(of_job))
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *estimates)
    stacked = jax.tree.map(lambda leaf: leaf.reshape(len(jobs), most, *leaf.shape[1:]), stacked)
    weights = np.array([[(q < len(b)) / len(b) for q in range(most)] for b in blocks])
    return BlocksOfModel(stacked, jnp.asarray(weights))
