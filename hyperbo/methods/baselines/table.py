"""Table: Bayesian optimization with the table prior of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.table import shrunk_table
from hyperbo.methods.baselines.task_values import TaskValues, recorded_values
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.pretrained import GPState
from hyperbo.methods.protocol import Scores
from hyperbo.pretrain.jobs import Job, Progress, no_progress


@pytree
class RecordedTable:
    """What Table learns: the values of the training tasks, and their spread, the unit of PI's threshold."""

    values: TaskValues
    spread: Float[Array, ""]


@pytree
class TablePolicy:
    """The first choice is the largest mean; later ones are those of the acquisition function."""

    recorded: RecordedTable
    noise_share: float = field(metadata={"static": True})
    decision: AcquisitionDecision = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> GPState:
        """The table of the candidates."""
        values = self.recorded.values
        prior = shrunk_table(values.at(candidates), mask, values.tasks, self.noise_share)
        return GPState(prior.unobserved(capacity), mask, jnp.asarray(-jnp.inf, candidates.dtype))

    def score(self, state: GPState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[GPState, Scores]:
        """The mean before the first observation, then the acquisition function."""
        known = state.posterior
        scores = self.decision.scores(
            known.mean,
            known.variance,
            known.noise_variance,
            state.best,
            state.mask,
            jnp.sum(self.recorded.values.tasks),
            step,
            key,
            self.recorded.spread,
        )
        return state, replace(scores, values=jnp.where(step == 0, known.mean, scores.values))

    def observe(
        self, state: GPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> GPState:
        """Condition on one more observation."""
        posterior = state.posterior.observe(step, candidate, y)
        return replace(state, posterior=posterior, best=jnp.maximum(state.best, y))


@dataclass(frozen=True)
class Table:
    """Settings of Table: the optimal prior of a finite domain, Proposition 4 (gpexist), without a kernel.

    The mean and covariance of the candidates are those of the training tasks' values; at a candidate that a
    task has not tried, its value is that of its nearest trial. Fewer tasks than candidates give no positive
    definite covariance: it is shrunk as in Ledoit and Wolf, "A well-conditioned estimator for
    large-dimensional covariance matrices", Journal of Multivariate Analysis 2004.

    Attributes:
      noise_share: noise variance of an observation, as a share of the mean variance of the candidates.
      decision: how candidates are chosen after the first; by default thresholded PI.
    """

    noise_share: float = 1e-4
    decision: AcquisitionDecision = field(default_factory=AcquisitionDecision)

    def __post_init__(self) -> None:
        require_positive(self, "noise_share")

    @double_precision
    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[RecordedTable]:
        """The trials of the training tasks; the seed has no say.

        Raises:
          InvalidInputError: a job has a single training task, which has no covariance.
        """
        if min(len(job.training.tasks) for job in jobs) < 2:
            raise InvalidInputError(
                "one training task has no sample covariance", where="Table", fix="give at least two tasks"
            )
        return [
            RecordedTable(values, jnp.asarray(job.training.spread))
            for job, values in zip(jobs, recorded_values(jobs), strict=True)
        ]

    def policy(self, fitted: RecordedTable, task: Task) -> TablePolicy:
        """Bayesian optimization with the table; of the test task it uses the observations only."""
        return TablePolicy(fitted, self.noise_share, self.decision)
