"""What is pre-trained and what comes of it: jobs, and models with the course of their training."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64

from hyperbo.code_version import code_version
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.pretrain.outcomes import all_trained
from hyperbo.tuning_data import TuningData

Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class Job:
    """One model to pre-train: on which tasks, from which seed.

    Attributes:
      training: the tasks.
      seed: of the model's first parameters and of the points drawn.
      task_weights: w_i of Eq. (nll), one per task, on any common scale; None: uniform.
    """

    training: TuningData
    seed: int
    task_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.task_weights is None:
            return
        weights = np.array(self.task_weights)
        if len(weights) != len(self.training.tasks):
            raise InvalidInputError(
                f"{len(weights)} task weights for {len(self.training.tasks)} tasks", where="Job"
            )
        if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise InvalidInputError(
                f"task_weights = {self.task_weights}", where="Job", fix="none negative, not all 0, all finite"
            )

    def mean_one_weights(self) -> Float64[np.ndarray, " t"]:
        """The task weights scaled to the mean 1: the sum over tasks stays a sum under uniform weights.

        >>> from types import SimpleNamespace
        >>> Job.mean_one_weights(SimpleNamespace(task_weights=(1.0, 3.0))).tolist()
        [0.5, 1.5]
        """
        if self.task_weights is None:
            return np.ones(len(self.training.tasks))
        weights = np.array(self.task_weights, float)
        return weights / weights.mean()


@dataclass(frozen=True)
class Pretrained:
    """A pre-trained Gaussian process and how its training went.

    Attributes:
      gp: the model, its leaves NumPy float64 arrays.
      losses: objective along training: the mean over each call of the loop (NLL, summed over tasks) or
        the value before each iteration and at the end (L-BFGS). After an early stop the last value repeats.
      largest_jitter: largest relative jitter that a factorisation needed: of all steps (NLL), or at the
        last point (L-BFGS). More than 0 is also warned of.
      seconds: wall time of the batch divided by the number of its models, compilation included.
    """

    gp: GaussianProcess
    losses: Float64[np.ndarray, " k"]
    largest_jitter: float
    seconds: float


def check_jobs(jobs: Sequence[Job]) -> None:
    """Refuse what cannot be one batch.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
    """
    if not jobs:
        raise InvalidInputError("no model to pre-train")
    if len({job.training.search_space for job in jobs}) > 1:
        raise InvalidInputError("the jobs of a batch differ in their search spaces", fix="train them apart")


def identity(
    objective: str, jobs: Sequence[Job], architecture: Architecture, training: Any
) -> dict[str, Any]:
    """All that the result of a training depends on, to the last bit: its jobs, settings, code and devices.

    Args:
      objective: name of what is minimised.
      jobs: of the batch.
      architecture: structure of the models.
      training: settings of the optimiser, a dataclass.
    """
    return {
        "objective": objective,
        "jobs": [
            {
                "dataset": job.training.provenance.dataset,
                "manifest_hash": job.training.provenance.manifest_hash,
                "preparation": job.training.provenance.preparation,
                "tasks": [task.name for task in job.training.tasks],
                "arrays_sha256": _arrays_sha256(job.training),
                "task_weights": job.task_weights,
                "seed": job.seed,
            }
            for job in jobs
        ],
        "architecture": asdict(architecture),
        "training": asdict(training),
        "code_version": code_version("hyperbo"),
        "jax_version": jax.__version__,
        "devices": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
    }


def _arrays_sha256(data: TuningData) -> str:
    digest = hashlib.sha256()
    for holder in (*data.tasks, *data.blocks):
        for array in (holder.x, holder.y):
            digest.update(f"{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def collect(
    jobs: Sequence[Job],
    gps: GaussianProcess,
    losses: Float64[np.ndarray, "j k"],
    jitters: Float64[np.ndarray, " j"],
    started: float,
) -> list[Pretrained]:
    """Take a trained batch apart, one model per job, in order.

    Args:
      jobs: of the batch.
      gps: the models, stacked; padding after the last job is left out.
      losses: of every model.
      jitters: the largest that each model needed.
      started: `time.perf_counter` when the training began.

    Raises:
      TrainingError: a model's loss or parameters are not finite; the others come with the error.
    """
    leaves: Any = jax.tree.map(np.asarray, gps)
    seconds = (time.perf_counter() - started) / len(jobs)
    outcomes: list[Pretrained | NumericalError] = []
    for i, job in enumerate(jobs):
        gp = jax.tree.map(lambda leaf, i=i: np.array(leaf[i]), leaves)
        finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gp))
        if not finite or not np.isfinite(losses[i]).all():
            outcomes.append(
                NumericalError(
                    f"pre-training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} "
                    f"with seed {job.seed} ended with a loss or parameters that are not finite; "
                    "look for extreme y values, or lower the learning rate"
                )
            )
            continue
        if jitters[i] > 0.0:
            warnings.warn(
                f"pre-training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} with "
                f"seed {job.seed}: a covariance needed a relative jitter of {jitters[i]:.0e}",
                stacklevel=3,
            )
        outcomes.append(Pretrained(gp, losses[i], float(jitters[i]), seconds))
    return all_trained(outcomes)
