"""What is pre-trained and what comes of it: jobs, trained models, and the error of jobs that failed."""

from __future__ import annotations

import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float64

from hyperbo.compute.parallel import unstack
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.pretrain.convergence import Fall, fall_of_training
from hyperbo.storage.code_version import NUMERIC, code_version
from hyperbo.storage.printable import count

T = TypeVar("T")
logger = logging.getLogger(__name__)


class TrainingError(NumericalError):
    """The training of one or more jobs of a batch failed; the error holds what was learned from the others.

    Args:
      outcomes: one per job, in order: what was learned, or the error of the job. At least one is an error.
    """

    def __init__(self, outcomes: Sequence[Any]) -> None:
        self.outcomes = tuple(outcomes)
        failures = [outcome for outcome in self.outcomes if isinstance(outcome, NumericalError)]
        others = f" ({len(failures)} of a batch of {len(self.outcomes)} failed)"
        super().__init__(str(failures[0]) + (others if len(self.outcomes) > 1 else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Between processes an error is made again from its arguments: the outcomes, not the message.
        return (type(self), (self.outcomes,))


def all_trained(outcomes: Sequence[T | NumericalError]) -> list[T]:
    """Return what was learned from every job of a batch, or raise where a job failed.

    Raises:
      TrainingError: a job failed.

    >>> all_trained(["one", NumericalError("no use")])
    Traceback (most recent call last):
        ...
    hyperbo.pretrain.jobs.TrainingError: no use (1 of a batch of 2 failed)
    """
    learned = [outcome for outcome in outcomes if not isinstance(outcome, NumericalError)]
    if len(learned) < len(outcomes):
        raise TrainingError(outcomes)
    return learned


def outcomes_of(train: Callable[[], Sequence[T]]) -> list[T | NumericalError]:
    """Train a batch; return what was learned from each job, or its error: the inverse of `all_trained`.

    >>> [str(outcome) for outcome in outcomes_of(lambda: all_trained(["one", NumericalError("no use")]))]
    ['one', 'no use']
    """
    try:
        return list(train())
    except TrainingError as error:
        return list(error.outcomes)


Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class Job:
    """One model to pre-train: on which tasks, from which seed.

    Attributes:
      training: the tasks.
      seed: of the model's first parameters and of the points drawn.
      task_weights: w_i of Eq. 13 (nll), one per task, on any common scale; None: uniform.
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
        the value before each iteration and at the end (L-BFGS, where after an early stop the last value
        repeats).
      largest_jitter: largest relative jitter that a factorisation needed: of all steps (NLL), or at the
        last point (L-BFGS). More than 0 is also warned of.
      seconds: wall time of the batch divided by the number of its models, compilation included.
      fall: how much the loss fell at last. Where it still fell, the log has a warning.
    """

    gp: GaussianProcess
    losses: Float64[np.ndarray, " k"]
    largest_jitter: float
    seconds: float
    fall: Fall


def check_jobs(jobs: Sequence[Job]) -> None:
    """Check that jobs can be trained as one batch.

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
    """All that the result of a training depends on, to the last bit: its jobs, settings, code and devices."""
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
        "code_version": code_version(*NUMERIC),
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
    losses: Sequence[Float64[np.ndarray, " _"]],
    jitters: Float64[np.ndarray, " j"],
    training: Any,
    started: float,
) -> list[Pretrained]:
    """Take a trained batch apart, one model per job, in order; padding after the last job is left out.

    `training` has the settings, a dataclass. Where a training ended while its loss was falling, a line of the
    log says so.

    Raises:
      TrainingError: a model's loss or parameters are not finite; the others come with the error.
    """
    seconds = (time.perf_counter() - started) / len(jobs)
    outcomes: list[Pretrained | NumericalError] = []
    for i, (job, gp) in enumerate(zip(jobs, unstack(gps, len(jobs)), strict=True)):
        of_job = (
            f"pre-training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} "
            f"with seed {job.seed}"
        )
        finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gp))
        if not finite or not np.isfinite(losses[i]).all():
            outcomes.append(
                NumericalError(
                    f"{of_job} ended with a loss or parameters that are not finite; "
                    "look for extreme y values, or lower the learning rate"
                )
            )
            continue
        if jitters[i] > 0.0:
            message = f"{of_job}: a covariance needed a relative jitter of {jitters[i]:.0e}"
            warnings.warn(message, stacklevel=3)
        fall = fall_of_training(losses[i], asdict(training), len(job.training.tasks))
        outcomes.append(Pretrained(gp, losses[i], float(jitters[i]), seconds, fall))
    trained = [outcome for outcome in outcomes if isinstance(outcome, Pretrained)]
    _warn_of_falling([each.fall for each in trained if each.fall.matters], len(jobs))
    return all_trained(outcomes)


def _warn_of_falling(falls: Sequence[Fall], models: int) -> None:
    if falls:
        steepest = max(falls, key=lambda fall: fall.before - fall.last)
        logger.warning(
            "the training of %d of %s ended while its loss was falling, %s; more steps lower it further",
            len(falls),
            count(models, "model"),
            steepest,
        )
