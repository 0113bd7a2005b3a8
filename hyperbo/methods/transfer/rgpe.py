"""RGPE: an ensemble of the training tasks' Gaussian processes, weighed by how they rank what is observed.

Feurer, Letham, Hutter and Bakshy, "Practical transfer learning for Bayesian optimization", 2018 as
"Scalable meta-learning for Bayesian optimization using ranking-weighted Gaussian process ensembles", arXiv
1802.02219 (version 4 of 2022 for ties and weight dilution).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import require_positive
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import factorise
from hyperbo.gp.posterior import predict
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.protocol import Scores
from hyperbo.methods.transfer.observed import Observed, best_explaining
from hyperbo.methods.transfer.ranking import (
    FEWEST_OBSERVATIONS,
    ensemble_weights,
    left_out_ranking_loss,
    left_out_samples,
    ranking_loss,
)
from hyperbo.methods.transfer.task_models import (
    JITTER,
    TaskModels,
    TaskPosteriors,
    add_factor_rows,
    fit_task_models,
    matern_on_inputs,
)
from hyperbo.pretrain.jobs import Job, Progress, no_progress
from hyperbo.pretrain.task_gp import TaskGP


@dataclass(frozen=True)
class RGPE:
    """Settings of RGPE.

    The test task's own process has the hyperparameters of one training task: those under which the
    observations are most probable. The publication fits it anew.

    Attributes:
      task_gp: how the processes of training tasks are fitted; Matern 5/2 on 100 points.
      samples: functions drawn of each model for its losses.
      decision: expected improvement, over the largest prediction at an observed candidate.
    """

    task_gp: TaskGP = field(default_factory=matern_on_inputs)
    samples: int = 256
    decision: AcquisitionDecision = field(default_factory=lambda: AcquisitionDecision("expected_improvement"))

    def __post_init__(self) -> None:
        self.decision.require_no_correction("RGPE")
        require_positive(self, "samples")

    def fit(self, jobs: Sequence[Job], progress: Progress = no_progress) -> list[TaskModels]:
        """A Gaussian process for each training task; nothing is drawn, so that seeds learn the same."""
        return fit_task_models(self.task_gp, jobs, progress)

    def policy(self, fitted: TaskModels, task: Task) -> RGPEPolicy:
        """The ensemble; of the test task it uses the observations only."""
        return RGPEPolicy(fitted, self)


@pytree
class RGPEState:
    """What the training tasks say of the candidates, and the observations.

    Attributes:
      posteriors: of the training tasks.
      rows: as in `add_factor_rows`.
      mask: which candidates are no padding.
      observed: candidates and values.
    """

    posteriors: TaskPosteriors
    rows: Float[Array, "m t c"]
    mask: Bool[Array, " c"]
    observed: Observed


@pytree
class RGPEPolicy:
    """Scores candidates by the ensemble."""

    models: TaskModels
    settings: RGPE = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> RGPEState:
        """Condition the training tasks' processes; equal weights until enough is observed."""
        posteriors = TaskPosteriors.of(self.models, candidates)
        rows = jnp.zeros((len(self.models.own), capacity, len(mask)), candidates.dtype)
        return RGPEState(posteriors, rows, mask, Observed.none(capacity, candidates.dtype))

    def score(self, state: RGPEState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[RGPEState, Scores]:
        """The acquisition function of the ensemble at every candidate."""
        enough, base = step >= FEWEST_OBSERVATIONS, state.posteriors
        seen = state.observed.seen(step)
        location, scale, y = state.observed.standardised(
            self.models.location, self.models.scale, seen, enough
        )
        x = base.candidates[state.observed.candidates]
        target = best_explaining(self.models.gps, x, y, seen)
        own_mean, own_variance = predict(target, x, y, seen, base.candidates)
        equal = jnp.append(self.models.own / jnp.sum(self.models.own), 0.0)
        weights = lax.cond(enough, lambda: self._weights(state, target, x, y, seen, step, key), lambda: equal)
        mean = weights @ jnp.vstack([base.mean, own_mean])
        variance = weights**2 @ jnp.vstack([base.variance, own_variance])
        noise = weights**2 @ jnp.append(base.noise_variance, target.noise_variance)
        # Models of tasks of other scales: only their predictions can be compared with each other.
        best = jnp.max(jnp.where(seen, mean[state.observed.candidates], -jnp.inf))
        scores = self.settings.decision.scores(
            mean, variance, noise, best, state.mask, jnp.sum(self.models.own), step, key
        )
        return state, Scores(scores.values, location + scale * scores.mean, scale * scores.deviation)

    def _weights(
        self,
        state: RGPEState,
        target: GaussianProcess,
        x: Float[Array, "t d"],
        y: Float[Array, " t"],
        seen: Bool[Array, " t"],
        step: Int[Array, ""],
        key: PRNGKeyArray,
    ) -> Float[Array, " models"]:
        chosen, shape = state.observed.candidates, (self.settings.samples, len(y))
        dropping, *drawing = jax.random.split(key, 4)

        def base_losses(arguments: tuple[Array, Array, Array]) -> Array:
            number, mean, rows = arguments
            draws = jax.random.normal(jax.random.fold_in(drawing[0], number), shape, y.dtype)
            return ranking_loss(mean[chosen] + draws @ rows[:, chosen], y, seen)

        numbers = jnp.arange(len(self.models.own))
        base = lax.map(base_losses, (numbers, state.posteriors.mean, state.rows))
        inside = seen[:, None] & seen[None, :]
        covariance = jnp.where(inside, target.kernel(x, x), 0.0)
        identity = jnp.eye(len(y), dtype=y.dtype)
        inverse_factor = factorise(covariance + target.noise_variance * identity, seen).inverse_factor
        prior, noise = (jax.random.normal(each, shape, y.dtype) for each in drawing[1:])
        prior = jnp.where(seen, prior @ factorise(covariance + JITTER * identity, seen).factor.T, 0.0)
        noise = jnp.where(seen, jnp.sqrt(target.noise_variance) * noise, 0.0)
        samples = left_out_samples(prior, noise, y, covariance, inverse_factor.T @ inverse_factor)
        own = left_out_ranking_loss(samples, y, seen)
        return ensemble_weights(dropping, base, own, self.models.own, 1.0 - step / len(y))

    def observe(
        self, state: RGPEState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> RGPEState:
        """Record the observation, and grow the factors that losses are drawn by."""
        rows = add_factor_rows(state.rows, state.posteriors, step, candidate)
        return replace(state, rows=rows, observed=state.observed.add(step, candidate, y))
