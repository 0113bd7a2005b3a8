"""RGPE: an ensemble of the training tasks' Gaussian processes, weighed by how they rank what is observed.

Feurer, Letham, Hutter and Bakshy, "Practical transfer learning for Bayesian optimization", 2018 as
"Scalable meta-learning for Bayesian optimization using ranking-weighted Gaussian process ensembles", arXiv
1802.02219 (version 4 of 2022 for ties and weight dilution).
"""

from __future__ import annotations

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
from hyperbo.methods.protocol import Scores
from hyperbo.methods.transfer.observed import best_explaining
from hyperbo.methods.transfer.ranking import (
    FEWEST_OBSERVATIONS,
    ensemble_weights,
    left_out_ranking_loss,
    left_out_samples,
    ranking_loss,
)
from hyperbo.methods.transfer.task_models import (
    JITTER,
    OfTaskModels,
    TaskModels,
    TaskModelsState,
    add_factor_rows,
)


@dataclass(frozen=True)
class RGPE(OfTaskModels):
    """Settings of RGPE.

    The test task's own process has the hyperparameters of one training task: those under which the
    observations are most probable. The publication fits it anew.

    Attributes:
      samples: functions drawn of each model for its losses.
    """

    samples: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "samples")

    def policy(self, fitted: TaskModels, task: Task) -> RGPEPolicy:
        """The ensemble; of the test task it uses the observations only."""
        return RGPEPolicy(fitted, self)


@pytree
class RGPEPolicy:
    """Scores candidates by the ensemble."""

    models: TaskModels
    settings: RGPE = field(metadata={"static": True})

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> TaskModelsState:
        """Condition the training tasks' processes; equal weights until enough is observed."""
        return TaskModelsState.start(self.models, candidates, mask, capacity)

    def score(
        self, state: TaskModelsState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[TaskModelsState, Scores]:
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
        state: TaskModelsState,
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
        self, state: TaskModelsState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> TaskModelsState:
        """Record the observation, and grow the factors that losses are drawn by."""
        rows = add_factor_rows(state.rows, state.posteriors, step, candidate)
        return replace(state, rows=rows, observed=state.observed.add(step, candidate, y))
