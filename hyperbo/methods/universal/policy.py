"""Bayesian optimization with the universal prior on recorded trials: no refit, no unit of the values."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.acquisition.functions import log_expected_improvement
from hyperbo.compute.pytree import pytree
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import condition
from hyperbo.methods.mixture.scale import log_student, variance_factor
from hyperbo.methods.protocol import Scores
from hyperbo.methods.universal.values import normal_scores


@pytree
class UniversalState:
    """The observations so far."""

    candidates: Float[Array, "c d"]
    x: Float[Array, "t d"]
    y: Float[Array, " t"]


@pytree
class UniversalPolicy:
    """Expected improvement of a mixture over drawn processes, on normal scores.

    The mathematics is that of `hyperbo.methods.mixture.policy`. A score changes with every observation, so
    the weights and the posteriors are computed anew before each choice.

    Attributes:
      components: processes of equal weight, stacked along a leading axis, such as `HyperPrior.components`.
    """

    components: GaussianProcess

    def start(
        self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int
    ) -> UniversalState:
        """The state without observations."""
        x = jnp.zeros((capacity, candidates.shape[1]), candidates.dtype)
        return UniversalState(candidates, x, jnp.zeros(capacity, candidates.dtype))

    def score(
        self, state: UniversalState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[UniversalState, Scores]:
        """The mixture's mean before any observation, then the logarithm of its expected improvement."""
        seen = jnp.arange(len(state.y)) < step
        z = normal_scores(state.y, seen)
        count = step.astype(z.dtype)

        def predicted(gp: GaussianProcess) -> tuple[Array, Array, Array, Array]:
            known = condition(gp, state.x, z, seen)
            quadratic = jnp.sum(known.whitened**2)
            half_log_determinant = -jnp.sum(jnp.log(jnp.diagonal(known.inverse_factor)))
            evidence = log_student(quadratic, half_log_determinant, count)
            factor, at = variance_factor(quadratic, count), state.candidates
            return evidence, known.mean(at), factor * known.variance(at), factor * gp.noise_variance

        evidence, means, variances, noise = jax.vmap(predicted)(self.components)
        log_weights = jax.nn.log_softmax(evidence)
        weights = jnp.exp(log_weights)
        mean = weights @ means
        deviation = jnp.sqrt(weights @ (variances + noise[:, None] + (means - mean) ** 2))
        best = jnp.max(jnp.where(seen, z, -jnp.inf))
        improvement = jax.vmap(log_expected_improvement, (0, 0, 0, None))(means, variances, noise, best)
        values = logsumexp(log_weights[:, None] + improvement, axis=0)
        return state, Scores(jnp.where(step > 0, values, mean), mean, deviation)

    def observe(
        self, state: UniversalState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> UniversalState:
        """Record the observation."""
        return replace(state, x=state.x.at[step].set(state.candidates[candidate]), y=state.y.at[step].set(y))
