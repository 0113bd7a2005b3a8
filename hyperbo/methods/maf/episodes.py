"""Episodes of Bayesian optimization on known tasks: what an acquisition function learns from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess

# Besides the input itself: posterior mean and standard deviation, step and horizon.
EXTRA_INPUTS = 4


@pytree
class ReLUNetwork:
    """Dense layers with ReLU between them and one linear output, in float32."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, inputs: Float[Array, "*batch e"]) -> Float[Array, "*batch"]:
        """One number for every row of inputs."""
        *hidden, (weight, bias) = zip(self.weights, self.biases, strict=True)
        for hidden_weight, hidden_bias in hidden:
            inputs = jax.nn.relu(inputs @ hidden_weight + hidden_bias)
        return (inputs @ weight + bias)[..., 0]


def initialise_network(
    key: PRNGKeyArray, inputs: int, hidden: Sequence[int], weight_scale: float
) -> ReLUNetwork:
    """Draw a network: weights from N(0, weight_scale^2), zero biases, float32."""
    shapes = list(itertools.pairwise((inputs, *hidden, 1)))
    weights = tuple(
        weight_scale * jax.random.normal(layer_key, shape, jnp.float32)
        for layer_key, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
    )
    return ReLUNetwork(weights, tuple(jnp.zeros(width, jnp.float32) for _, width in shapes))


def network_inputs(
    posterior: CandidatePosterior, candidates: Float[Array, "c d"], step: Int[Array, ""], horizon: int
) -> Float[Array, "c e"]:
    """What the network sees of every candidate: posterior mean and standard deviation, x, t and T; float32.

    The deviation is that of the function, without noise. A run longer than the episodes of training, of T
    steps, stays at their last step, since the network saw no later one.
    """
    count = len(candidates)
    time = step_and_horizon(step, horizon)
    columns = (posterior.mean, jnp.sqrt(posterior.variance), candidates, jnp.broadcast_to(time, (count, 2)))
    return jnp.column_stack(columns).astype(jnp.float32)


def step_and_horizon(step: Int[Array, ""], horizon: int) -> Float[Array, " 2"]:
    """(t, T), as both networks see them; t ends with the last step of an episode."""
    return jnp.stack([jnp.minimum(step, horizon - 1), jnp.asarray(horizon, step.dtype)]).astype(jnp.float32)


def log_probabilities(scores: Float[Array, "*b c"], mask: Bool[Array, "*b c"]) -> Float[Array, "*b c"]:
    """Log softmax over the candidates; minus infinity outside the mask."""
    return jax.nn.log_softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)


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


# Chooses the candidate to observe, given a key and the log probabilities of the candidates.
Choose = Callable[[PRNGKeyArray, Array], Array]


def most_probable(key: PRNGKeyArray, log_probability: Float[Array, " c"]) -> Int[Array, ""]:
    """The choice of a trained policy."""
    return jnp.argmax(log_probability)


def play(network: ReLUNetwork, problem: Problem, horizon: int, choose: Choose, key: PRNGKeyArray) -> Episode:
    """One episode of Bayesian optimization, of `horizon` steps; a candidate may be observed again."""
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
        """One of the tasks in `rows`, drawn in proportion to the weights, with at most `count` of its points.

        The points are drawn uniformly, but for the best one, which is always among them.
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
