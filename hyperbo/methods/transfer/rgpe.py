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
    added_ranking_loss,
    ensemble_weights,
    left_out_ranking_loss,
    left_out_samples,
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
class RGPEState:
    """What the training tasks say of the candidates, the observations, and the losses of drawn functions.

    A function of a training task is drawn one observation at a time: its value at the next one is made of a
    new normal number and those before it. So its loss grows with each observation, at a cost of its pairs.

    Attributes:
      tasks: its `rows` are those of `add_factor_rows`.
      normals: normal numbers of the drawn functions.
      samples: their values at the observed candidates.
      losses: how many pairs of observations they put in the wrong order.
    """

    tasks: TaskModelsState
    normals: Float[Array, "m s t"]
    samples: Float[Array, "m s t"]
    losses: Float[Array, "m s"]


@pytree
class RGPEPolicy:
    """Scores candidates by the ensemble."""

    models: TaskModels
    settings: RGPE = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> RGPEState:
        """Condition the training tasks' processes; equal weights until enough is observed."""
        tasks = TaskModelsState.start(self.models, candidates, mask, capacity)
        room = jnp.zeros((len(self.models.own), self.settings.samples, capacity), candidates.dtype)
        return RGPEState(tasks, room, room, room[:, :, 0])

    def score(self, state: RGPEState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[RGPEState, Scores]:
        """The acquisition function of the ensemble at every candidate."""
        drawing, weighing, deciding = jax.random.split(key, 3)
        state = lax.cond(step > 0, lambda: self._drawn(state, step - 1, drawing), lambda: state)
        tasks = state.tasks
        enough, base = step >= FEWEST_OBSERVATIONS, tasks.posteriors
        seen = tasks.observed.seen(step)
        location, scale, y = tasks.observed.standardised(
            self.models.location, self.models.scale, seen, enough
        )
        x = base.candidates[tasks.observed.candidates]
        target = best_explaining(self.models.gps, x, y, seen)
        own_mean, own_variance = predict(target, x, y, seen, base.candidates)
        equal = jnp.append(self.models.own / jnp.sum(self.models.own), 0.0)
        weights = lax.cond(
            enough, lambda: self._weights(state.losses, target, x, y, seen, weighing), lambda: equal
        )
        mean = weights @ jnp.vstack([base.mean, own_mean])
        variance = weights**2 @ jnp.vstack([base.variance, own_variance])
        noise = weights**2 @ jnp.append(base.noise_variance, target.noise_variance)
        # Models of tasks of other scales: only their predictions can be compared with each other.
        best = jnp.max(jnp.where(seen, mean[tasks.observed.candidates], -jnp.inf))
        scores = self.settings.decision.scores(
            mean, variance, noise, best, tasks.mask, jnp.sum(self.models.own), step, deciding
        )
        return state, Scores(scores.values, location + scale * scores.mean, scale * scores.deviation)

    def _drawn(self, state: RGPEState, last: Int[Array, ""], key: PRNGKeyArray) -> RGPEState:
        """Draw the functions of training tasks at the last observation, and add the pairs that it makes."""
        tasks, candidate = state.tasks, state.tasks.observed.candidates[last]
        count, dtype = self.settings.samples, state.normals.dtype

        def of_task(number: Int[Array, ""]) -> Float[Array, " s"]:
            # The draws of a task do not depend on the number of tasks.
            return jax.random.normal(jax.random.fold_in(key, number), (count,), dtype)

        normals = state.normals.at[:, :, last].set(jax.vmap(of_task)(jnp.arange(len(self.models.own))))
        deviations = jnp.einsum("mst,mt->ms", normals, tasks.rows[:, :, candidate])
        values = tasks.posteriors.mean[:, candidate, None] + deviations
        samples = state.samples.at[:, :, last].set(values)
        losses = state.losses + added_ranking_loss(samples, tasks.observed.y, last)
        return RGPEState(tasks, normals, samples, losses)

    def _weights(
        self,
        losses: Float[Array, "m s"],
        target: GaussianProcess,
        x: Float[Array, "t d"],
        y: Float[Array, " t"],
        seen: Bool[Array, " t"],
        key: PRNGKeyArray,
    ) -> Float[Array, " models"]:
        shape = (self.settings.samples, len(y))
        dropping, *drawing = jax.random.split(key, 3)
        inside = seen[:, None] & seen[None, :]
        covariance = jnp.where(inside, target.kernel(x, x), 0.0)
        identity = jnp.eye(len(y), dtype=y.dtype)
        inverse_factor = factorise(covariance + target.noise_variance * identity, seen).inverse_factor
        prior, noise = (jax.random.normal(each, shape, y.dtype) for each in drawing)
        prior = jnp.where(seen, prior @ factorise(covariance + JITTER * identity, seen).factor.T, 0.0)
        noise = jnp.where(seen, jnp.sqrt(target.noise_variance) * noise, 0.0)
        samples = left_out_samples(prior, noise, y, covariance, inverse_factor.T @ inverse_factor)
        own = left_out_ranking_loss(samples, y, seen)
        time_left = 1.0 - jnp.sum(seen) / len(y)
        return ensemble_weights(dropping, losses, own, self.models.own, time_left)

    def observe(
        self, state: RGPEState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> RGPEState:
        """Record the observation, and grow the factors that functions are drawn by."""
        tasks = state.tasks
        rows = add_factor_rows(tasks.rows, tasks.posteriors, step, candidate)
        return replace(
            state, tasks=replace(tasks, rows=rows, observed=tasks.observed.add(step, candidate, y))
        )
