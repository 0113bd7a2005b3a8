"""What the methods with a pre-trained Gaussian process share: H-NLL, H-EKL, FSBO and ABLR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.decision import Decision
from hyperbo.methods.gp_policy import GPPolicy, PretrainedGP
from hyperbo.methods.refit_policy import FineTuning, RefitPolicy
from hyperbo.pretrain import Job, Pretrained, Progress, all_trained, no_progress, outcomes_of
from hyperbo.tuning_data import Task


class PretrainedMethod(ABC):
    """A method whose outcome is a prior that can be kept as a file.

    Attributes:
      architecture: structure of the Gaussian process.
      training: settings of its training, a dataclass; they are written into the prior's file.
      decision: how candidates are chosen.
      refit_iterations: L-BFGS iterations that fine-tune the prior before each choice; 0: the prior is fixed,
        as in the paper's offline experiments.
    """

    architecture: Architecture
    training: Any
    decision: Decision
    refit_iterations: int

    def __post_init__(self) -> None:
        if self.refit_iterations < 0:
            raise InvalidInputError(
                f"refit_iterations = {self.refit_iterations} is negative", where=type(self).__name__
            )

    @abstractmethod
    def pretrain(
        self,
        jobs: Sequence[Job],
        progress: Progress = no_progress,
        checkpoint: CheckpointFolder | None = None,
    ) -> list[Pretrained]:
        """Pre-train one prior per job; `checkpoint` is where a killed training goes on from.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[PretrainedGP]:
        """One prior per job.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """
        outcomes = outcomes_of(lambda: self.pretrain(jobs, progress))
        return all_trained(
            [
                outcome
                if isinstance(outcome, NumericalError)
                else prior_in_use(outcome.gp, len(job.training.tasks))
                for job, outcome in zip(jobs, outcomes, strict=True)
            ]
        )

    def policy(self, fitted: PretrainedGP, task: Task) -> GPPolicy | RefitPolicy:
        """Bayesian optimization with the prior; nothing of the test task is used but its observations."""
        if not self.refit_iterations:
            return GPPolicy(fitted, self.decision)
        refit = FineTuning(self.refit_iterations)
        return RefitPolicy(fitted.gp, fitted.training_tasks, refit, self.decision)


@double_precision
def prior_in_use(gp: GaussianProcess, training_tasks: int) -> PretrainedGP:
    """A prior, as read from a file or as trained, ready for `PretrainedMethod.policy`."""
    return PretrainedGP(gp, jnp.asarray(training_tasks, jnp.int32))
