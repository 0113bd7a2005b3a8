"""The methods of Section 7.5 (online), the paper's online experiments, by the names of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hyperbo.acquisition import ONLINE_UCB_COEFFICIENT
from hyperbo.bayesopt.history import PaddedHistory
from hyperbo.bayesopt.propose import Maximisation, OnlineMethod, Proposal, maximise_ucb, refit
from hyperbo.compute.pytree import pytree
from hyperbo.data.subsets import at_most_points
from hyperbo.errors import InvalidInputError, NumericalError, require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess
from hyperbo.gp.numerics import double_precision
from hyperbo.methods import HNLL, STBO, STBOH, AcquisitionDecision, HSum
from hyperbo.methods.paper import paper_settings
from hyperbo.methods.single_task.refit_policy import Parameters, Refit
from hyperbo.methods.single_task.stboh import STBOHParameters
from hyperbo.objectives import Estimator
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain import Job, Pretrained, Progress, SumTraining, all_trained, no_progress, outcomes_of
from hyperbo.pretrain.ekl import BlocksOfModel, blocks_of_jobs, mean_ekl_minimised
from hyperbo.pretrain.task_table import tasks_of_jobs

# The paper's: one hidden layer of 8 under a linear mean and a Matern 3/2 kernel.
PAPER_ARCHITECTURE = Architecture(hidden=(8,), kernel="matern32")
PAPER_EKL_ITERATIONS = 400
DECISION = AcquisitionDecision("upper_confidence_bound", ONLINE_UCB_COEFFICIENT)
REFIT_ITERATIONS = 20


@pytree
class RetrainingData:
    """The part of a job's training data that its prior is re-trained on, or those of all jobs, stacked.

    It has few points of each task, fixed.

    Attributes:
      weights: 1 for each task of the job, 0 for tasks that pad it to the size of the largest job.
      blocks: its matched inputs; None where EKL takes no part.
    """

    x: Float[Array, "*jobs n m d"]
    y: Float[Array, "*jobs n m"]
    mask: Bool[Array, "*jobs n m"]
    weights: Float[Array, "*jobs n"]
    blocks: BlocksOfModel | None


def retraining_data(jobs: Sequence[Job], points: int, estimator: Estimator | None) -> list[RetrainingData]:
    """Draw what the priors of jobs are re-trained on, with each job's seed; task weights are ignored.

    These are at most `points` of each task, and of matched inputs. `estimator` is None where EKL takes no
    part.

    Raises:
      InvalidInputError: EKL takes part and a job has no matched inputs.
    """
    few = [Job(at_most_points(job.training, points, job.seed), job.seed) for job in jobs]
    table, rows, weights, _ = tasks_of_jobs(few)
    blocks = blocks_of_jobs(few, estimator) if estimator is not None else None
    stacked = RetrainingData(table.x[rows], table.y[rows], table.mask[rows], jnp.asarray(weights), blocks)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(len(jobs))]


def retraining_loss(
    gp: GaussianProcess, data: RetrainingData, history: PaddedHistory, ekl: float, nll: float
) -> Float[Array, ""]:
    """The weighted sum of EKL on the training blocks and NLL on all tasks, the tuned task among them.

    The paper says that models were re-trained "on D_f", the run's own observations. Here D_f joins the
    training data as one more task, and the loss is that of the pre-training: Eq. 13 (nll) over N + 1 tasks,
    and Eq. 8 (multi-kl) as before. On D_f alone, a network would be fitted to a single observation.
    """
    own, _ = task_nll(gp, history.x, history.mapped, history.ended)
    others, _ = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, data.x, data.y, data.mask)
    loss = nll * (data.weights @ others + own) / (jnp.sum(data.weights) + 1.0)
    if data.blocks is not None:
        loss += ekl * mean_ekl_minimised(gp, data.blocks)[0]
    return loss


@pytree
class RetrainedPrior:
    """A pre-trained prior with the data that it is re-trained on."""

    gp: GaussianProcess
    data: RetrainingData


@dataclass(frozen=True)
class Retrained:
    """H-NLL or H-EKL online: a pre-trained prior, re-trained before each proposal.

    Attributes:
      method: HNLL; or HSum, EKL + 0.1 NLL, which is the paper's H-EKL online. Its `refit_iterations` are the
        L-BFGS iterations of each re-training, which always starts from the pre-trained prior.
      points: re-training uses at most this many points of each training task, and of the matched inputs.
      pretraining_points: the same limit for the pre-training; None: no limit.
      maximisation: of the acquisition function.

    >>> Retrained(HNLL())
    Traceback (most recent call last):
        ...
    hyperbo.errors.InvalidInputError: HNLL online: probability_of_improvement cannot be maximised over a \
whole search space; use upper_confidence_bound
    """

    method: HNLL | HSum
    points: int = 50
    maximisation: Maximisation = field(default_factory=Maximisation)
    pretraining_points: int | None = None

    def __post_init__(self) -> None:
        where = f"{type(self.method).__name__} online"
        _require_online(self.method.decision, where)
        require_positive(self.method, "refit_iterations", where=where)
        require_positive(self, "points", optional=("pretraining_points",), where=where)
        training = self.method.training
        if isinstance(training, SumTraining) and (training.squared_euclidean or training.squared_wasserstein):
            raise InvalidInputError("re-training uses EKL and NLL only", where=where)

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[RetrainedPrior]:
        """Pre-train one prior per job, and draw the data that it is re-trained on.

        Raises:
          TrainingError: a job has no usable prior. The error holds those of the others.
        """
        outcomes = outcomes_of(lambda: self.pretrain(jobs, progress))
        return all_trained(
            [
                outcome if isinstance(outcome, NumericalError) else RetrainedPrior(outcome.gp, data)
                for outcome, data in zip(outcomes, self._retraining_data(jobs), strict=True)
            ]
        )

    def pretrain(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[Pretrained]:
        """Pre-train one prior per job.

        Raises:
          TrainingError: a job has no usable prior. The error holds those of the others.
        """
        if self.pretraining_points is not None:
            points = self.pretraining_points
            jobs = [replace(job, training=at_most_points(job.training, points, job.seed)) for job in jobs]
        return self.method.pretrain(jobs, progress)

    def with_priors(self, jobs: Sequence[Job], priors: Sequence[GaussianProcess]) -> list[RetrainedPrior]:
        """What `fit` returns, from priors that were pre-trained earlier on the same jobs."""
        return [
            RetrainedPrior(gp, data) for gp, data in zip(priors, self._retraining_data(jobs), strict=True)
        ]

    def propose(self, fitted: RetrainedPrior, history: PaddedHistory, key: PRNGKeyArray) -> Proposal:
        """Re-train on the training data and the run's trials, then maximise GP-UCB."""
        training = self.method.training
        ekl, nll = (training.ekl, training.nll) if isinstance(training, SumTraining) else (0.0, 1.0)

        def loss(gp: GaussianProcess) -> jax.Array:
            return retraining_loss(gp, fitted.data, history, ekl, nll)

        gp = refit(loss, fitted.gp, history, self.method.refit_iterations)
        return maximise_ucb(gp, history, self.method.decision.coefficient, self.maximisation, key)

    @double_precision
    def _retraining_data(self, jobs: Sequence[Job]) -> list[RetrainingData]:
        training = self.method.training
        estimator = training.estimator if isinstance(training, SumTraining) and training.ekl > 0.0 else None
        return retraining_data(jobs, self.points, estimator)


@dataclass(frozen=True)
class SingleTask:
    """STBO or STBOH online: no pre-trained prior; the model is refitted to the run's own trials only.

    Attributes:
      method: STBO or STBOH; its `iterations` are those of each refit.
      maximisation: of the acquisition function.
    """

    method: STBO | STBOH
    maximisation: Maximisation = field(default_factory=Maximisation)

    def __post_init__(self) -> None:
        _require_online(self.method.decision, f"{type(self.method).__name__} online")

    def fit(
        self, jobs: Sequence[Job], progress: Progress = no_progress
    ) -> list[GaussianProcess] | list[STBOHParameters]:
        """The parameters from which every refit starts; the training tasks are not used."""
        return self.method.fit(jobs, progress)

    def propose(
        self, fitted: GaussianProcess | STBOHParameters, history: PaddedHistory, key: PRNGKeyArray
    ) -> Proposal:
        """Maximise the posterior density of the parameters, then GP-UCB."""
        method: Refit = self.method

        def loss(parameters: Parameters) -> jax.Array:
            nll = task_nll(method.model(parameters), history.x, history.mapped, history.ended)[0]
            return nll + method.penalty(parameters)

        gp = method.model(refit(loss, fitted, history, method.iterations))
        return maximise_ucb(gp, history, self.method.decision.coefficient, self.maximisation, key)


@dataclass(frozen=True)
class RandomSearch:
    """Rand online: uniform in the unit cube, which is the warped search space."""

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[jax.Array]:
        """Learns nothing: the seed of each job stands for it, because JAX counts the runs by an array."""
        return [jnp.asarray(job.seed, jnp.int32) for job in jobs]

    def propose(self, fitted: jax.Array, history: PaddedHistory, key: PRNGKeyArray) -> Proposal:
        """A uniform draw."""
        x = jax.random.uniform(key, (history.x.shape[1],), history.x.dtype)
        return Proposal(x, jnp.zeros((), x.dtype))


def _require_online(decision: AcquisitionDecision, where: str) -> None:
    """Refuse settings that have no meaning over a whole search space."""
    if decision.acquisition != "upper_confidence_bound":
        raise InvalidInputError(
            f"{decision.acquisition} cannot be maximised over a whole search space",
            where=where,
            fix="use upper_confidence_bound",
        )
    decision.require_no_correction(where)


# The defaults, by measurement (docs/decisions/online-tuning.md): networks and trainings are those of the
# offline experiments.
_OF_PRIOR = {"decision": DECISION, "refit_iterations": REFIT_ITERATIONS}
EKL_POINTS = 200
ONLINE_METHODS: dict[str, OnlineMethod] = {
    "H-NLL": Retrained(replace(HNLL(), **_OF_PRIOR)),
    "H-EKL": Retrained(replace(HSum(), **_OF_PRIOR), pretraining_points=EKL_POINTS),
    "STBO": SingleTask(STBO(decision=DECISION)),
    "STBOH": SingleTask(STBOH()),
    "Rand": RandomSearch(),
}


def paper_online(method: OnlineMethod) -> OnlineMethod:
    """An online method with the paper's network, and the paper's training by NLL.

    Section 7.5 (online). The paper does not say how long H-EKL is trained there: the 100 iterations of the
    offline experiments leave the mean of so small a network far from the data.

    >>> paper_online(ONLINE_METHODS["H-NLL"]).method.architecture.hidden
    (8,)
    """
    if not isinstance(method, Retrained | SingleTask) or isinstance(method.method, STBOH):
        return method
    of_paper: Any = paper_settings(method.method)
    of_paper = replace(of_paper, architecture=PAPER_ARCHITECTURE)
    if isinstance(of_paper, HSum):
        of_paper = replace(of_paper, training=replace(of_paper.training, iterations=PAPER_EKL_ITERATIONS))
    return replace(method, method=of_paper)
