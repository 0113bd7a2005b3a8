"""The methods of section "Results on the PD1 Online Hyperparameter Tuning Tasks", by the paper's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from hyperbo.acquisition import ONLINE_UCB_COEFFICIENT
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.methods import HNLL, STBO, STBOH, Decision, HSum
from hyperbo.methods.refit_policy import Parameters, Refit
from hyperbo.methods.stboh import STBOHParameters
from hyperbo.objectives import task_nll
from hyperbo.online.maximisation import Maximisation, maximise_ucb, refit, require_online
from hyperbo.online.protocol import Observations, OnlineMethod, Proposal
from hyperbo.online.training_terms import TrainingTerms, retraining_loss, training_terms
from hyperbo.pretrain import Job, Pretrained, Progress, SumTraining, all_trained, no_progress, outcomes_of
from hyperbo.subsets import at_most_points

# One hidden layer of 8 under a linear mean and a Matern 3/2 kernel.
ARCHITECTURE = Architecture(hidden=(8,), kernel="matern32")
DECISION = Decision("upper_confidence_bound", ONLINE_UCB_COEFFICIENT)
REFIT_ITERATIONS = 20


@pytree
class RetrainedPrior:
    """A pre-trained prior with what it is re-trained on."""

    gp: GaussianProcess
    terms: TrainingTerms


@dataclass(frozen=True)
class Retrained:
    """H-NLL or H-EKL online: a pre-trained prior, re-trained before each choice.

    Attributes:
      method: HNLL; or HSum, EKL + 0.1 NLL, which is the paper's H-EKL online. Its `refit_iterations` are the
        L-BFGS iterations of each re-training, always from the prior as it was pre-trained.
      points: re-training takes at most so many points of each training task, and so many matched inputs.
      pretraining_points: the same of the pre-training; None: all.
      maximisation: of the acquisition function.

    >>> Retrained(HNLL())
    Traceback (most recent call last):
        ...
    hyperbo.errors.InvalidInputError: HNLL online: probability_of_improvement is not maximised over a whole \
search space; use upper_confidence_bound
    """

    method: HNLL | HSum
    points: int = 50
    maximisation: Maximisation = field(default_factory=Maximisation)
    pretraining_points: int | None = None

    def __post_init__(self) -> None:
        where = f"{type(self.method).__name__} online"
        require_online(self.method.decision, where)
        counts = {
            "refit_iterations": self.method.refit_iterations,
            "points": self.points,
            "pretraining_points": self.pretraining_points,
        }
        if any(count is not None and count < 1 for count in counts.values()):
            raise InvalidInputError(
                ", ".join(f"{name} = {count}" for name, count in counts.items()),
                where=where,
                fix="give at least 1 for each",
            )
        training = self.method.training
        if isinstance(training, SumTraining) and (training.squared_euclidean or training.squared_wasserstein):
            raise InvalidInputError("re-training is by EKL and NLL alone", where=where)

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[RetrainedPrior]:
        """Pre-train one prior per job, and draw what it is re-trained on.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """
        outcomes = outcomes_of(lambda: self.pretrain(jobs, progress))
        return all_trained(
            [
                outcome if isinstance(outcome, NumericalError) else RetrainedPrior(outcome.gp, terms)
                for outcome, terms in zip(outcomes, self._terms(jobs), strict=True)
            ]
        )

    def pretrain(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Pretrained]:
        """Pre-train one prior per job.

        Raises:
          TrainingError: a job has no usable prior; those of the others come with the error.
        """
        if self.pretraining_points is not None:
            points = self.pretraining_points
            jobs = [replace(job, training=at_most_points(job.training, points, job.seed)) for job in jobs]
        return self.method.pretrain(jobs, progress)

    def with_priors(self, jobs: Sequence[Job], priors: Sequence[GaussianProcess]) -> list[RetrainedPrior]:
        """What `fit` returns, of priors that were pre-trained before on the same jobs."""
        return [RetrainedPrior(gp, terms) for gp, terms in zip(priors, self._terms(jobs), strict=True)]

    def propose(self, fitted: RetrainedPrior, observations: Observations, key: PRNGKeyArray) -> Proposal:
        """Re-train on the training data and the run's observations, then maximise GP-UCB."""
        ekl, nll = self._weights()

        def loss(gp: GaussianProcess) -> jax.Array:
            seen = observations.x, observations.mapped, observations.seen
            return retraining_loss(gp, fitted.terms, *seen, ekl, nll)

        gp = refit(loss, fitted.gp, observations, self.method.refit_iterations)
        return maximise_ucb(gp, observations, self.method.decision.coefficient, self.maximisation, key)

    @double_precision
    def _terms(self, jobs: Sequence[Job]) -> list[TrainingTerms]:
        training = self.method.training
        estimator = training.estimator if isinstance(training, SumTraining) and training.ekl > 0.0 else None
        return training_terms(jobs, self.points, estimator)

    def _weights(self) -> tuple[float, float]:
        """Of EKL and of NLL."""
        if isinstance(self.method, HNLL):
            return 0.0, 1.0
        return self.method.training.ekl, self.method.training.nll


@dataclass(frozen=True)
class SingleTask:
    """STBO or STBOH online: no prior but that of its settings, refitted to the run's observations alone.

    Attributes:
      method: STBO or STBOH; its `iterations` are those of each refit.
      maximisation: of the acquisition function.
    """

    method: STBO | STBOH
    maximisation: Maximisation = field(default_factory=Maximisation)

    def __post_init__(self) -> None:
        require_online(self.method.decision, f"{type(self.method).__name__} online")

    def fit(
        self, jobs: Sequence[Job], progress: Progress = no_progress
    ) -> list[GaussianProcess] | list[STBOHParameters]:
        """Where every refit starts; no training task is looked at."""
        return self.method.fit(jobs, progress)

    def propose(
        self, fitted: GaussianProcess | STBOHParameters, observations: Observations, key: PRNGKeyArray
    ) -> Proposal:
        """Maximise the posterior density of the parameters, then GP-UCB."""
        method: Refit = self.method

        def loss(parameters: Parameters) -> jax.Array:
            seen = observations.x, observations.mapped, observations.seen
            return task_nll(method.model(parameters), *seen)[0] + method.penalty(parameters)

        gp = method.model(refit(loss, fitted, observations, method.iterations))
        return maximise_ucb(gp, observations, self.method.decision.coefficient, self.maximisation, key)


@pytree
class Nothing:
    """What a method that learns nothing has learned; JAX wants an array to count the runs by."""

    seed: jax.Array


@dataclass(frozen=True)
class RandomSearch:
    """Rand online: uniform in the unit cube, which is the warped search space."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Nothing]:
        """Nothing to learn."""
        return [Nothing(jnp.asarray(job.seed, jnp.int32)) for job in jobs]

    def propose(self, fitted: Nothing, observations: Observations, key: PRNGKeyArray) -> Proposal:
        """A uniform draw."""
        x = jax.random.uniform(key, (observations.x.shape[1],), observations.x.dtype)
        return Proposal(x, jnp.zeros((), x.dtype))


_OF_PRIOR = {"architecture": ARCHITECTURE, "decision": DECISION, "refit_iterations": REFIT_ITERATIONS}
# The paper's settings, where it gives any. It does not say how long H-EKL was trained online: the 100
# iterations of the offline experiments leave the mean of so small a network far from the data
# (docs/decisions/online-tuning.md).
EKL_ITERATIONS, EKL_POINTS = 400, 200
ONLINE_METHODS: dict[str, OnlineMethod] = {
    "H-NLL": Retrained(replace(HNLL(), **_OF_PRIOR)),
    "H-EKL": Retrained(
        replace(HSum(training=SumTraining(EKL_ITERATIONS)), **_OF_PRIOR), pretraining_points=EKL_POINTS
    ),
    "STBO": SingleTask(STBO(architecture=ARCHITECTURE, decision=DECISION)),
    "STBOH": SingleTask(STBOH()),
    "Rand": RandomSearch(),
}
