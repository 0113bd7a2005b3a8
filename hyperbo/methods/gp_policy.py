"""The policy of every method whose prior stays fixed during Bayesian optimization."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.acquisition import probability_of_improvement
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.posterior import FinitePosterior, finite_prior
from hyperbo.gp.pytree import pytree


@pytree
class GPState:
    """The posterior over the candidates and the largest y so far."""

    posterior: FinitePosterior
    best: Float[Array, ""]


@pytree
class GPPolicy:
    """Thresholded PI under a fixed prior, Algorithm HyperBO: observations condition, nothing re-trains."""

    gp: GaussianProcess

    def start(self, candidates: Float[Array, "c d"], capacity: int) -> GPState:
        """The prior over the candidates."""
        return GPState(finite_prior(self.gp, candidates, capacity), jnp.asarray(-jnp.inf, candidates.dtype))

    def score(
        self, state: GPState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[GPState, Float[Array, " c"]]:
        """Thresholded PI of every candidate."""
        posterior = state.posterior
        return state, probability_of_improvement(
            posterior.mean, posterior.variance, posterior.noise_variance, state.best
        )

    def observe(
        self, state: GPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> GPState:
        """Condition on one more observation."""
        return GPState(state.posterior.observe(step, candidate, y), jnp.maximum(state.best, y))
