"""A Gaussian process for every training task, and what they say about the candidates of a test task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from hyperbo.compute.parallel import stack
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task, pad_pairs
from hyperbo.errors import NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision, factorise
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.transfer.observed import Observed
from hyperbo.pretrain.jobs import Job, Progress, all_trained, check_jobs, no_progress
from hyperbo.pretrain.task_gp import TaskGP

# Of standardised values. It stands on the diagonal where a posterior is conditioned on exact values, such as
# draws, of a candidate that may repeat.
JITTER = 1e-6


def matern_on_inputs() -> TaskGP:
    """Matern 5/2 with a length scale for each input; the mean is 0, since values are standardised."""
    return TaskGP(Architecture(hidden=(), kernel="matern52", mean="zero"))


@pytree
class TaskModels:
    """The Gaussian processes of a job's training tasks, padded to the job with most tasks.

    Attributes:
      gps: one for each task, stacked.
      x: the points of each task that its process is conditioned on.
      y: their values, standardised by the mean and deviation of all values of the task.
      mask: which points are no padding.
      own: which tasks are no padding.
      location: the tasks' means, averaged.
      scale: the tasks' deviations, averaged.
    """

    gps: GaussianProcess
    x: Float[Array, "m n d"]
    y: Float[Array, "m n"]
    mask: Bool[Array, "m n"]
    own: Bool[Array, " m"]
    location: Float[Array, ""]
    scale: Float[Array, ""]


@dataclass(frozen=True)
class OfTaskModels:
    """Settings of the methods that learn a Gaussian process for each training task.

    Attributes:
      task_gp: how the processes of training tasks are fitted; Matern 5/2 on 100 points.
      decision: expected improvement.
    """

    task_gp: TaskGP = field(default_factory=matern_on_inputs)
    decision: AcquisitionDecision = field(default_factory=lambda: AcquisitionDecision("expected_improvement"))

    def __post_init__(self) -> None:
        self.decision.require_no_correction(type(self).__name__)

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[TaskModels]:
        """A Gaussian process for each training task; nothing is drawn, so that seeds learn the same."""
        return fit_task_models(self.task_gp, jobs, progress)


@double_precision
def fit_task_models(task_gp: TaskGP, jobs: Sequence[Job], progress: Progress) -> list[TaskModels]:
    """Fit each training task once by marginal likelihood, and put together those of each job.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
      TrainingError: the process of a job's task is not finite; what the other jobs learned comes with it.
    """
    check_jobs(jobs)
    tasks = {id(task): task for job in jobs for task in job.training.tasks}
    fitted: dict[int, GaussianProcess | NumericalError] = {}
    for done, (key, task) in enumerate(tasks.items()):
        progress(done, len(tasks))
        try:
            fitted[key] = task_gp.fit(standardised(task))
        except NumericalError as error:
            fitted[key] = error
    progress(len(tasks), len(tasks))
    most = max(len(job.training.tasks) for job in jobs)
    return all_trained(
        [_of_job(task_gp, job, [fitted[id(task)] for task in job.training.tasks], most) for job in jobs]
    )


def standardised(task: Task) -> Task:
    """The task with values of mean 0 and deviation 1, or all 0 where they are equal."""
    # Values whose squares overflow end in runs that fail, which are told, not in a warning here.
    with np.errstate(over="ignore", invalid="ignore"):
        return replace(task, y=(task.y - task.y.mean()) / (task.y.std() or 1.0))


def _of_job(
    task_gp: TaskGP, job: Job, gps: Sequence[GaussianProcess | NumericalError], most: int
) -> TaskModels | NumericalError:
    usable = [gp for gp in gps if not isinstance(gp, NumericalError)]
    if len(usable) < len(gps):
        return next(gp for gp in gps if isinstance(gp, NumericalError))
    tasks = list(job.training.tasks)
    with np.errstate(over="ignore", invalid="ignore"):
        location = np.mean([task.y.mean() for task in tasks])
        scale = np.mean([task.y.std() for task in tasks]) or 1.0
    # Padding repeats the first task.
    missing = most - len(tasks)
    pairs = []
    for task in map(standardised, tasks + tasks[:1] * missing):
        rows = task_gp.rows(len(task.y))
        pairs.append((task.x[rows], task.y[rows]))
    padded = pad_pairs(pairs, task_gp.points)
    arrays = (padded.x, padded.y, padded.mask, np.arange(most) < len(tasks), location, scale)
    return TaskModels(stack(usable + usable[:1] * missing), *map(jnp.asarray, arrays))


@pytree
class TaskPosteriors:
    """The posteriors of the training tasks' functions over the candidates of a test task.

    Attributes:
      gps: as in `TaskModels`.
      candidates: inputs.
      whitened: L^-1 k(points of the task, candidates), L the Cholesky factor of the noisy covariance.
      mean: posterior means, standardised.
      variance: posterior variances of the functions.
    """

    gps: GaussianProcess
    candidates: Float[Array, "c d"]
    whitened: Float[Array, "m n c"]
    mean: Float[Array, "m c"]
    variance: Float[Array, "m c"]

    @classmethod
    def of(cls, models: TaskModels, candidates: Float[Array, "c d"]) -> TaskPosteriors:
        """Condition every task's process on the points of the task."""

        def of_task(arguments: tuple[GaussianProcess, Array, Array, Array]) -> tuple[Array, Array, Array]:
            gp, x, y, mask = arguments
            mean, covariance = gp.noisy_moments(x)
            cross = jnp.where(mask[:, None], gp.kernel(x, candidates), 0.0)
            residual = jnp.where(mask, y - mean, 0.0)
            whitened = factorise(covariance, mask).inverse_factor @ jnp.column_stack([residual, cross])
            residual, cross = whitened[:, 0], whitened[:, 1:]
            variance = gp.kernel.diagonal(candidates) - jnp.sum(cross**2, axis=0)
            return cross, gp.mean(candidates) + residual @ cross, jnp.maximum(variance, 0.0)

        moments = lax.map(of_task, (models.gps, models.x, models.y, models.mask))
        return cls(models.gps, candidates, *moments)

    @property
    def noise_variance(self) -> Float[Array, " m"]:
        """sigma^2 of every task."""
        return jax.vmap(lambda gp: gp.noise_variance)(self.gps)

    def covariance_rows(self, candidate: Int[Array, ""]) -> Float[Array, "m c"]:
        """Posterior covariance, in every task, of one candidate with all."""
        at = self.candidates[candidate][None]
        prior = jax.vmap(lambda gp: gp.kernel(at, self.candidates)[0])(self.gps)
        return prior - jnp.einsum("mn,mnc->mc", self.whitened[:, :, candidate], self.whitened)


def add_factor_rows(
    rows: Float[Array, "m t c"],
    posteriors: TaskPosteriors,
    step: Int[Array, ""],
    candidate: Int[Array, ""],
) -> Float[Array, "m t c"]:
    """Grow the Cholesky factors of every task's joint posterior over the observed candidates by one.

    Row s of task m is row s of L^-1 S(observed, candidates), S the task's posterior covariance and L the
    factor of S(observed, observed), with `JITTER` added to each squared pivot. So its columns of observed
    candidates are L^T: with z standard normal, mean + z @ rows is a draw of the task's function there.

    Args:
      rows: those so far; zero from row `step` on.
      posteriors: of the tasks.
      step: number of observations so far.
      candidate: the one that is observed now.
    """
    explained = jnp.einsum("mt,mtc->mc", rows[:, :, candidate], rows)
    row = posteriors.covariance_rows(candidate) - explained
    pivots = jnp.sqrt(jnp.maximum(row[:, candidate], 0.0) + JITTER)
    return rows.at[:, step].set(row / pivots[:, None])


@pytree
class TaskModelsState:
    """What the training tasks say of the candidates, and the observations.

    Attributes:
      posteriors: of the training tasks.
      rows: of each observed candidate and each task, a row over all candidates, as the method keeps it.
      mask: which candidates are no padding.
      observed: candidates and values.
    """

    posteriors: TaskPosteriors
    rows: Float[Array, "m t c"]
    mask: Bool[Array, " c"]
    observed: Observed

    @classmethod
    def start(
        cls, models: TaskModels, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> TaskModelsState:
        """Condition the training tasks' processes; nothing is observed."""
        posteriors = TaskPosteriors.of(models, candidates)
        rows = jnp.zeros((len(models.own), capacity, len(mask)), candidates.dtype)
        return cls(posteriors, rows, mask, Observed.none(capacity, candidates.dtype))
