"""The training data that a prior is re-trained on during online tuning: few points of each task, fixed."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import Estimator, task_nll
from hyperbo.pretrain import Job
from hyperbo.pretrain.ekl import mean_ekl_minimised
from hyperbo.pretrain.matched import BlocksOfModel, blocks_of_jobs
from hyperbo.pretrain.task_table import tasks_of_jobs
from hyperbo.subsets import at_most_points


@pytree
class TrainingTerms:
    """What one job is re-trained on.

    Attributes:
      x: inputs of its training tasks.
      y: their values, mapped.
      mask: which rows are points.
      weights: 1 for each of the job's tasks, 0 for what fills it up to the job with the most.
      blocks: its matched inputs; None where EKL takes no part.
    """

    x: Float[Array, "n m d"]
    y: Float[Array, "n m"]
    mask: Bool[Array, "n m"]
    weights: Float[Array, " n"]
    blocks: BlocksOfModel | None


def training_terms(jobs: Sequence[Job], points: int, estimator: Estimator | None) -> list[TrainingTerms]:
    """Draw what jobs are re-trained on, with each job's seed.

    Args:
      jobs: training tasks and seeds, of which all that `pretrain` needs; task weights do not apply.
      points: at most so many of each task, and at most so many matched inputs.
      estimator: of the covariances over tasks; None where EKL takes no part.

    Returns:
      One for each job, of equal shapes.

    Raises:
      InvalidInputError: EKL takes part and a job has no matched inputs.
    """
    few = [Job(at_most_points(job.training, points, job.seed), job.seed) for job in jobs]
    table, rows, weights, _ = tasks_of_jobs(few)
    blocks = blocks_of_jobs(few, estimator) if estimator is not None else None
    x, y, mask = (np.asarray(leaf) for leaf in (table.x, table.y, table.mask))
    return [
        TrainingTerms(
            jnp.asarray(x[of_job]),
            jnp.asarray(y[of_job]),
            jnp.asarray(mask[of_job]),
            jnp.asarray(weights[i]),
            None if blocks is None else jax.tree.map(lambda leaf, i=i: leaf[i], blocks),
        )
        for i, of_job in enumerate(rows)
    ]


def retraining_loss(
    gp: GaussianProcess,
    terms: TrainingTerms,
    x: Float[Array, "t d"],
    y: Float[Array, " t"],
    mask: Bool[Array, " t"],
    ekl: float,
    nll: float,
) -> Float[Array, ""]:
    """The weighted sum of EKL on the training blocks and NLL on all tasks, that of the run among them.

    The paper says that models were re-trained "on D_f", the run's own observations. Here D_f joins the
    training data as one more task, and the objective is that of the pre-training: Eq. (nll) over N + 1 tasks,
    and Eq. (multi-kl) as before. On D_f alone, a network would be fitted to a single observation.

    Args:
      gp: model.
      terms: training data of the job.
      x: inputs that the run has tried.
      y: their values, mapped.
      mask: which rows are observations.
      ekl: weight of EKL, 0 without blocks.
      nll: weight of NLL.
    """
    own, _ = task_nll(gp, x, y, mask)
    others, _ = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, terms.x, terms.y, terms.mask)
    loss = nll * (terms.weights @ others + own) / (jnp.sum(terms.weights) + 1.0)
    if terms.blocks is not None:
        loss += ekl * mean_ekl_minimised(gp, terms.blocks)[0]
    return loss
