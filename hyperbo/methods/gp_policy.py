"""The policy of every method whose prior stays fixed during Bayesian optimization."""

from __future__ import annotations

from dataclasses import field, replace

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree
from hyperbo.methods.decision import Decision
from hyperbo.methods.protocol import Scores


@pytree
class PretrainedGP:
    """What a method with a prior learns from training tasks.

    Attributes:
      gp: the prior.
      training_tasks: N, their number.
    """

    gp: GaussianProcess
    training_tasks: Int[Array, ""]


@pytree
class GPState:
    """The posterior over the candidates and the largest y so far."""

    posterior: CandidatePosterior
    mask: Bool[Array, " c"]
    best: Float[Array, ""]


@pytree
class GPPolicy:
    """Algorithm HyperBO: observations condition the prior, nothing is trained again."""

    fitted: PretrainedGP
    decision: Decision = field(default=Decision(), metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> GPState:
        """The prior over the candidates."""
        posterior = CandidatePosterior.of(self.fitted.gp, candidates, capacity)
        return GPState(posterior, mask, jnp.asarray(-jnp.inf, candidates.dtype))

    def score(self, state: GPState, step: Int[Array, ""], key: PRNGKeyArray) -> tuple[GPState, Scores]:
        """The acquisition function at every candidate."""
        posterior = state.posterior
        return state, self.decision.scores(
            posterior.mean,
            posterior.variance,
            posterior.noise_variance,
            state.best,
            state.mask,
            self.fitted.training_tasks,
            step,
            key,
        )

    def observe(
        self, state: GPState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> GPState:
        """Condition on one more observation."""
        return replace(
            state,
            posterior=state.posterior.observe(step, candidate, y),
            best=jnp.maximum(state.best, y),
        )
