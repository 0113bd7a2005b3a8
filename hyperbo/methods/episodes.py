"""Episodes of Bayesian optimization on known tasks: what an acquisition function learns from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.pytree import pytree
from hyperbo.methods.acquisition_network import ReLUNetwork, network_inputs
from hyperbo.methods.policy_gradient import log_probabilities


@pytree
class Problem:
    """Candidates to optimize over, and the Gaussian process that observations condition."""

    gp: GaussianProcess
    x: Float[Array, "c d"]
    y: Float[Array, " c"]
    mask: Bool[Array, " c"]


@pytree
class Episode:
    """What happened in the steps of one episode; `regret` is the simple regret after each."""

    inputs: Float[Array, "t c e"]
    choice: Int[Array, " t"]
    log_probability: Float[Array, " t"]
    regret: Float[Array, " t"]


# Of a key and the log probabilities of the candidates: which of them to observe.
Choose = Callable[[PRNGKeyArray, Array], Array]


def most_probable(key: PRNGKeyArray, log_probability: Float[Array, " c"]) -> Int[Array, ""]:
    """The choice of a trained policy."""
    return jnp.argmax(log_probability)


def play(network: ReLUNetwork, problem: Problem, horizon: int, choose: Choose, key: PRNGKeyArray) -> Episode:
    """One episode of Bayesian optimization; a candidate may be observed again.

    Args:
      network: the policy.
      problem: candidates and prior.
      horizon: number of observations.
      choose: draws a candidate, or takes the most probable.
      key: of the draws.
    """
    optimum = jnp.max(jnp.where(problem.mask, problem.y, -jnp.inf))

    def step(carry: tuple[Any, Array], step: Array) -> tuple[tuple[Any, Array], tuple[Array, ...]]:
        posterior, best = carry
        inputs = network_inputs(posterior, problem.x, step, horizon)
        of_candidates = log_probabilities(network(inputs), problem.mask)
        choice = choose(jax.random.fold_in(key, step), of_candidates)
        y = problem.y[choice]
        best = jnp.maximum(best, y)
        outcome = (inputs, choice, of_candidates[choice], optimum - best)
        return (posterior.observe(step, choice, y), best), outcome

    start = CandidatePosterior.of(problem.gp, problem.x, horizon)
    carry = (start, jnp.asarray(-jnp.inf, problem.y.dtype))
    return Episode(*lax.scan(step, carry, jnp.arange(horizon))[1])


@pytree
class KnownTasks:
    """The tasks of all jobs, padded and stacked, each with its own Gaussian process."""

    x: Float[Array, "t n d"]
    y: Float[Array, "t n"]
    mask: Bool[Array, "t n"]
    gps: GaussianProcess

    def problem(self, row: Int[Array, ""]) -> Problem:
        """A task with all its points."""
        return Problem(self._gp(row), self.x[row], self.y[row], self.mask[row])

    def draw(
        self, rows: Int[Array, " t"], weights: Float[Array, " t"], count: int, key: PRNGKeyArray
    ) -> Problem:
        """A task, drawn in proportion to the weights, with at most `count` of its points.

        The points are drawn uniformly, but for the best one, which is always among them.

        Args:
          rows: of the tasks to draw from.
          weights: of these tasks.
          count: number of points.
          key: of both draws.
        """
        task_key, point_key = jax.random.split(key)
        row = rows[jax.random.categorical(task_key, jnp.log(weights))]
        x, y, mask = self.x[row], self.y[row], self.mask[row]
        # Every point has a number of its own: what is drawn does not depend on the padding.
        order = jnp.where(mask, jax.random.uniform(point_key, mask.shape, jnp.float32), -1.0)
        order = order.at[jnp.argmax(jnp.where(mask, y, -jnp.inf))].set(2.0)
        _, points = lax.top_k(order, min(count, len(mask)))
        return Problem(self._gp(row), x[points], y[points], mask[points])

    def _gp(self, row: Int[Array, ""]) -> GaussianProcess:
        gp: Any = jax.tree.map(lambda leaf: leaf[row], self.gps)
        return gp
