"""The methods that learn a Gaussian-process prior before they see the test task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.checkpoints import CheckpointFolder
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.protocol import Fitted, Policy, Scores
from hyperbo.methods.single_task.refit_policy import FineTuning, RefitPolicy
from hyperbo.pretrain.ekl import EKLTraining, pretrain_ekl
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, all_trained, no_progress, outcomes_of
from hyperbo.pretrain.nll import NLLTraining, pretrain_nll
from hyperbo.pretrain.weighted_sum import SumTraining, pretrain_sum


@pytree
class PretrainedGP:
    """What a method with a prior learns from training tasks.

    Attributes:
      gp: the prior.
      training_tasks: N, their number.
      spread: of the training tasks' y, the unit of PI's threshold.
    """

    gp: GaussianProcess
    training_tasks: Int[Array, ""]
    spread: Float[Array, ""]


@pytree
class GPState:
    """The posterior over the candidates and the largest y so far."""

    posterior: CandidatePosterior
    mask: Bool[Array, " c"]
    best: Float[Array, ""]


@pytree
class GPPolicy:
    """Algorithm 1 (hyperbo): observations condition the prior, nothing is trained again."""

    fitted: PretrainedGP
    decision: AcquisitionDecision = field(default=AcquisitionDecision(), metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> GPState:
        """The prior over the candidates."""
        posterior = CandidatePosterior.of(self.fitted.gp, candidates, capacity)
        return GPState(posterior, mask, jnp.asarray(-jnp.inf, candidates.dtype))

    def score(self, state: GPState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[GPState, Scores]:
        """The acquisition function at every candidate."""
        known, tasks = state.posterior, self.fitted.training_tasks
        moments = known.mean, known.variance, known.noise_variance
        return state, self.decision.scores(
            *moments, state.best, state.mask, tasks, step, key, self.fitted.spread
        )

    def observe(
        self, state: GPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> GPState:
        """Condition on one more observation."""
        posterior = state.posterior.observe(step, candidate, y)
        return replace(state, posterior=posterior, best=jnp.maximum(state.best, y))


@dataclass(frozen=True)
class PretrainedMethod(ABC):
    """A method that learns a prior, which can be kept as a file.

    Attributes:
      architecture: structure of the Gaussian process; by default an MLP (32, 32) under a linear mean and a
        Matern 5/2 kernel.
      training: settings of its training, a dataclass; they are written into the prior's file.
    """

    architecture: Architecture = field(default_factory=Architecture)
    training: Any = None

    # What trains with these settings: the same arguments as `pretrain_nll`.
    _pretrain: ClassVar[Callable[..., list[Pretrained]]]

    @property
    def trained_as(self) -> PretrainedMethod:
        """The method that trains the same prior; methods for which it is equal share their priors' files."""
        return self

    def pretrain(
        self,
        jobs: Sequence[Job],
        progress: Progress = no_progress,
        checkpoint: CheckpointFolder | None = None,
    ) -> list[Pretrained]:
        """Pre-train one prior per job; an interrupted training goes on from `checkpoint`.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """
        return type(self)._pretrain(jobs, self.architecture, self.training, progress, checkpoint)

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Fitted]:
        """One prior per job.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """
        outcomes = outcomes_of(lambda: self.pretrain(jobs, progress))
        return all_trained(
            [
                outcome if isinstance(outcome, NumericalError) else self.in_use(outcome.gp, job.training)
                for job, outcome in zip(jobs, outcomes, strict=True)
            ]
        )

    def in_use(self, gp: GaussianProcess, training: TuningData) -> Fitted:
        """What `fit` returns, from a prior that was pre-trained earlier on the same training tasks."""
        return prior_in_use(gp, self.tasks_learned_from(training), training.spread)

    def tasks_learned_from(self, training: TuningData) -> int:
        """N of the prior: how many of the training tasks it is learned from, all by default."""
        return len(training.tasks)

    @abstractmethod
    def policy(self, fitted: Any, task: Task) -> Policy:
        """Bayesian optimization with the prior; of the test task it uses the observations only."""


@double_precision
def prior_in_use(gp: GaussianProcess, training_tasks: int, spread: float = 1.0) -> PretrainedGP:
    """A prior, as read from a file or as trained, ready for `PretrainedMethod.policy`.

    Args:
      gp: the prior.
      training_tasks: N, the number of tasks that it was learned from.
      spread: of these tasks' y (`TuningData.spread`); 1 where they are not known.
    """
    return PretrainedGP(gp, jnp.asarray(training_tasks, jnp.int32), jnp.asarray(spread, jnp.float64))


@dataclass(frozen=True)
class ConditionedMethod(PretrainedMethod):
    """A method that conditions its prior on the observations, and decides by an acquisition function.

    Attributes:
      decision: how candidates are chosen; by default thresholded PI.
      refit_iterations: L-BFGS iterations that fine-tune the prior before each choice; 0: the prior is fixed,
        as in the paper's offline experiments.
    """

    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)
    refit_iterations: int = 0

    def __post_init__(self) -> None:
        if self.refit_iterations < 0:
            raise InvalidInputError(
                f"refit_iterations = {self.refit_iterations} is negative", where=type(self).__name__
            )

    def policy(self, fitted: PretrainedGP, task: Task) -> Policy:
        """Bayesian optimization with the prior; of the test task it uses the observations only."""
        if not self.refit_iterations:
            return GPPolicy(fitted, self.decision)
        refit = FineTuning(self.refit_iterations)
        return RefitPolicy(fitted.gp, fitted.training_tasks, refit, self.decision, fitted.spread)


@dataclass(frozen=True)
class HNLL(ConditionedMethod):
    """Settings of H-NLL, section 7.2 "Description of All Compared Methods".

    Attributes:
      training: Adam on 50 points of every task; by default not for as long as in the paper (`NLLTraining`).
    """

    training: NLLTraining = field(default_factory=NLLTraining)
    _pretrain = staticmethod(pretrain_nll)


@dataclass(frozen=True)
class HEKL(ConditionedMethod):
    """Settings of H-EKL, section 7.2 "Description of All Compared Methods".

    Attributes:
      training: 100 iterations of L-BFGS on the matched data.
    """

    training: EKLTraining = field(default_factory=EKLTraining)
    _pretrain = staticmethod(pretrain_ekl)

    def tasks_learned_from(self, training: TuningData) -> int:
        """N of the prior: the tasks of the matched blocks, since EKL sees no other."""
        return tasks_in_blocks(training)


@dataclass(frozen=True)
class HSum(ConditionedMethod):
    """Settings of H-Sum: the objective of the paper's online experiments, EKL + 0.1 NLL.

    Section 7.5 "Results on the PD1 Online Hyperparameter Tuning Tasks"; its architecture has one hidden
    layer of 8.

    Attributes:
      training: 100 iterations of L-BFGS on all matched inputs and all points.
    """

    training: SumTraining = field(default_factory=SumTraining)
    _pretrain = staticmethod(pretrain_sum)

    def tasks_learned_from(self, training: TuningData) -> int:
        """N of the prior: all training tasks, or those of the matched blocks where the NLL has no weight."""
        return len(training.tasks) if self.training.nll > 0.0 else tasks_in_blocks(training)


@dataclass(frozen=True)
class FSBO(HNLL):
    """Settings of FSBO, section 7.2 "Description of All Compared Methods": H-NLL with a zero mean.

    Attributes:
      architecture: H-NLL's kernel on the same features, mean zero.
    """

    architecture: Architecture = field(default_factory=lambda: Architecture(mean="zero"))


@dataclass(frozen=True)
class ABLR(HNLL):
    """Settings of ABLR, section 7.2 "Description of All Compared Methods": zero mean, linear kernel.

    Attributes:
      architecture: k(x, x') = b^2 + phi(x) . phi(x') / s^2 with phi of H-NLL, mean zero.
    """

    architecture: Architecture = field(default_factory=lambda: Architecture(kernel="linear", mean="zero"))


def tasks_in_blocks(training: TuningData) -> int:
    """How many different tasks the complete matched blocks have."""
    return len({task for block in training.complete_blocks for task in block.tasks})
