"""ScaML-GP: the posteriors of the training tasks, weighed, are the prior of the test task.

Tighineanu, Grossberger, Baireuther, Skubch, Falkner, Vinogradska and Berkenkamp, "Scalable meta-learning with
Gaussian processes", AISTATS 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.optimizers import minimise_lbfgs
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.kernels import Stationary
from hyperbo.gp.numerics import factorise, gaussian_nll, inverse_softplus, softplus
from hyperbo.gp.parameter_priors import LogNormal
from hyperbo.methods.protocol import Scores
from hyperbo.methods.transfer.task_models import (
    OfTaskModels,
    TaskModels,
    TaskModelsState,
)

# What the training tasks do not explain is less than their own variance, 1, and as smooth as they are.
RESIDUAL = Architecture((), signal_variance=0.25, lengthscale=0.5, noise_variance=0.01, mean="zero")
# Log-normal priors around those values, one deviation of the logarithm.
_SPREAD = 1.0
# Observations before the test task has a mean and a scale of its own.
_FEWEST_FOR_SCALE = 3
# A refit ends where an iteration does not lower its objective.
_CONVERGED = 0.0


@dataclass(frozen=True)
class ScaMLGP(OfTaskModels):
    """Settings of ScaML-GP.

    Attributes:
      iterations: of L-BFGS in each refit of weights and residual process.
    """

    iterations: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "iterations")

    def policy(self, fitted: TaskModels, task: Task) -> ScaMLPolicy:
        """Of the test task it uses the observations only."""
        return ScaMLPolicy(fitted, self)


@pytree
class ScaMLParameters:
    """What a refit moves.

    Attributes:
      raw_weights: of the training tasks, before softplus.
      residual: the process of what they leave unexplained, and the noise.
    """

    raw_weights: Float[Array, " m"]
    residual: GaussianProcess


@pytree
class ScaMLPolicy:
    r"""Scores candidates by the process with

    .. math:: \mu(x) = \sum_m w_m \mu_m(x), \qquad
              k(x, x') = \sum_m w_m^2 \Sigma_m(x, x') + k_\mathrm{res}(x, x'),

    mu_m and Sigma_m the posterior mean and covariance of training task m.
    """

    models: TaskModels
    settings: ScaMLGP = field(metadata={"static": True})

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> TaskModelsState:
        """Condition the training tasks' processes."""
        return TaskModelsState.start(self.models, candidates, mask, capacity)

    def score(
        self, state: TaskModelsState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[TaskModelsState, Scores]:
        """Refit, condition on the observations, and score."""
        seen = state.observed.seen(step)
        location, scale, y = state.observed.standardised(
            self.models.location, self.models.scale, seen, step >= _FEWEST_FOR_SCALE
        )
        parameters = self.refitted(state, y, seen)
        mean, variance = self.posterior(parameters, state, y, seen)
        best = jnp.max(jnp.where(seen, y, -jnp.inf))
        noise, tasks = parameters.residual.noise_variance, jnp.sum(self.models.own)
        scores = self.settings.decision.scores(mean, variance, noise, best, state.mask, tasks, step, key)
        return state, Scores(scores.values, location + scale * scores.mean, scale * scores.deviation)

    def weights(self, parameters: ScaMLParameters) -> Float[Array, " m"]:
        """w; 0 of padding."""
        return jnp.where(self.models.own, softplus(parameters.raw_weights), 0.0)

    def penalty(self, parameters: ScaMLParameters) -> Float[Array, ""]:
        """Negative log density, up to a constant: w_m is Gamma(1, 1), the residual's are log-normal."""
        kernel = parameters.residual.kernel
        assert isinstance(kernel, Stationary)  # by RESIDUAL
        ratios = jnp.concatenate(
            [
                softplus(kernel.raw_signal_variance)[None] / RESIDUAL.signal_variance,
                softplus(kernel.raw_lengthscales) / RESIDUAL.lengthscale,
                parameters.residual.noise_variance[None] / RESIDUAL.noise_variance,
            ]
        )
        return jnp.sum(self.weights(parameters)) + jnp.sum(LogNormal(0.0, _SPREAD).penalty(ratios))

    def refitted(
        self, state: TaskModelsState, y: Float[Array, " t"], seen: Bool[Array, " t"]
    ) -> ScaMLParameters:
        """The most probable parameters; those of the start are equal weights of sum 1."""
        own, chosen = self.models.own, state.observed.candidates
        x, means = state.posteriors.candidates[chosen], state.posteriors.mean[:, chosen]
        covariances = state.rows[:, :, chosen]
        equal = inverse_softplus(jnp.full(len(own), 1.0 / jnp.sum(own)))
        drawn = initialise(jax.random.key(0), x.shape[1], RESIDUAL)
        start, unravel = ravel_pytree(ScaMLParameters(equal, drawn))

        def negative_log_posterior(flat: Array) -> Array:
            parameters = unravel(flat)
            weights, gp = self.weights(parameters), parameters.residual
            covariance = jnp.einsum("m,mij->ij", weights**2, covariances) + gp.noisy_moments(x)[1]
            value, _ = gaussian_nll((y - weights @ means)[:, None], covariance, seen)
            return value + self.penalty(parameters)

        found, _ = minimise_lbfgs(negative_log_posterior, start, self.settings.iterations, _CONVERGED)
        return unravel(jnp.where(jnp.any(seen), found, start))

    def posterior(
        self,
        parameters: ScaMLParameters,
        state: TaskModelsState,
        y: Float[Array, " t"],
        seen: Bool[Array, " t"],
    ) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
        """Mean and variance of the function at the candidates."""
        weights, gp, tasks = self.weights(parameters), parameters.residual, state.posteriors
        chosen = state.observed.candidates
        prior_mean = weights @ tasks.mean
        prior_variance = weights**2 @ tasks.variance + gp.kernel.diagonal(tasks.candidates)
        rows = jnp.einsum("m,mtc->tc", weights**2, state.rows)
        rows = rows + gp.kernel(tasks.candidates[chosen], tasks.candidates)
        noise = gp.noise_variance * jnp.eye(len(y), dtype=y.dtype)
        inverse_factor = factorise(rows[:, chosen] + noise, seen).inverse_factor
        residual = jnp.where(seen, y - prior_mean[chosen], 0.0)
        whitened = inverse_factor @ jnp.column_stack([residual, jnp.where(seen[:, None], rows, 0.0)])
        variance = prior_variance - jnp.sum(whitened[:, 1:] ** 2, axis=0)
        return prior_mean + whitened[:, 0] @ whitened[:, 1:], jnp.maximum(variance, 0.0)

    def observe(
        self, state: TaskModelsState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> TaskModelsState:
        """Record the observation, and what the training tasks say of its covariance with the others."""
        rows = state.rows.at[:, step].set(state.posteriors.covariance_rows(candidate))
        return replace(state, rows=rows, observed=state.observed.add(step, candidate, y))
