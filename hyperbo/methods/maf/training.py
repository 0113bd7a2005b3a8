"""Training of one acquisition function by reinforcement learning: its settings and its iterations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.methods.maf.episodes import (
    EXTRA_INPUTS,
    KnownTasks,
    ReLUNetwork,
    initialise_network,
    most_probable,
    play,
    step_and_horizon,
)
from hyperbo.methods.maf.policy_gradient import (
    ActorCritic,
    PolicyGradient,
    Transitions,
    generalised_advantages,
    improve,
)


@dataclass(frozen=True)
class MAFTraining:
    """Settings of the training.

    "Published" is what the published code of Volpp et al. uses for hyperparameter optimization; "paper" is
    appendix D.5 "MAF Implementation Details", which takes all else from there.

    Attributes:
      hidden: ReLU layers of the policy and of the value network; published.
      weight_scale: standard deviation of the weights at first; published.
      horizon: T, observations per episode; published. A longer run stays at the last step of an episode, and
        there mostly observes the same candidates again.
      episodes: per iteration; 60 episodes of 20 steps are the published batch of 1200.
      candidates: of a task, drawn for each episode, its best always among them; 1559, the paper's cap on
        the points of a task (it took the first ones).
      minimum_regret: added to the regret before the logarithm of the reward; published.
      iterations: the paper's.
      validation_tasks: number of training tasks, drawn by the job's seed, on which the best iteration is
        chosen: that of the lowest simple regret; 3, the paper's. Our choice, since it does not say: they are
        trained on as well, and the regret is the mean over all steps of an episode, not that after the last.
      iterations_per_call: iterations between two lines of progress; they divide `iterations`.
      optimization: of the policy, published.

    >>> MAFTraining(iterations=15)
    Traceback (most recent call last):
        ...
    hyperbo.errors.InvalidInputError: MAFTraining: iterations_per_call = 10 does not divide 15
    """

    hidden: tuple[int, ...] = (200, 200, 200, 200)
    weight_scale: float = 0.01
    horizon: int = 20
    episodes: int = 60
    candidates: int = 1559
    minimum_regret: float = 1e-6
    iterations: int = 1000
    validation_tasks: int = 3
    iterations_per_call: int = 10
    optimization: PolicyGradient = field(default_factory=PolicyGradient)

    def __post_init__(self) -> None:
        where = "MAFTraining"
        require_positive(self, "horizon", "episodes", "candidates", "iterations", "validation_tasks")
        require_positive(self, "iterations_per_call", "weight_scale", "minimum_regret")
        if self.hidden and min(self.hidden) < 1:
            raise InvalidInputError(f"hidden = {self.hidden} has an empty layer", where=where)
        for part, whole, name in (
            (self.iterations_per_call, self.iterations, "iterations_per_call"),
            (self.optimization.minibatch, self.episodes * self.horizon, "minibatch"),
        ):
            if whole % part:
                raise InvalidInputError(f"{name} = {part} does not divide {whole}", where=where)


@pytree
class TasksOfJob:
    """Of one job, or of all, stacked: rows of the table, weights of the tasks, rows to validate on, seed."""

    rows: Int[Array, "*jobs t"]
    weights: Float[Array, "*jobs t"]
    validation: Int[Array, "*jobs v"]
    seed: Int[Array, "*jobs"]


@pytree
class Course:
    """Training between two iterations."""

    networks: ActorCritic
    optimizer: Any
    key: PRNGKeyArray
    best: ReLUNetwork
    lowest_regret: Float[Array, ""]


def start_course(training: MAFTraining, dimension: int, own: TasksOfJob) -> Course:
    """Untrained networks, drawn by the job's seed."""
    policy_key, value_key, key = jax.random.split(jax.random.key(own.seed), 3)
    policy, value = (
        initialise_network(network_key, inputs, training.hidden, training.weight_scale)
        for network_key, inputs in ((policy_key, dimension + EXTRA_INPUTS), (value_key, 2))
    )
    networks: Any = ActorCritic(policy, value)
    optimizer = optax.adam(training.optimization.learning_rate).init(networks)
    return Course(networks, optimizer, key, policy, jnp.asarray(jnp.inf, jnp.float64))


def record(
    networks: ActorCritic, tasks: KnownTasks, own: TasksOfJob, training: MAFTraining, key: PRNGKeyArray
) -> tuple[Transitions, Float[Array, ""]]:
    """Play the episodes of one iteration: their steps, and the mean reward per step.

    The reward of a step is -log10(r + minimum_regret), r the simple regret after it.
    """
    horizon, settings = training.horizon, training.optimization
    time = jax.vmap(step_and_horizon, in_axes=(0, None))(jnp.arange(horizon), horizon)
    values = networks.value(time)

    def one(key: PRNGKeyArray) -> tuple[Transitions, Array]:
        draw_key, play_key = jax.random.split(key)
        problem = tasks.draw(own.rows, own.weights, training.candidates, draw_key)
        episode = play(networks.policy, problem, horizon, jax.random.categorical, play_key)
        rewards = -jnp.log10(episode.regret + training.minimum_regret).astype(jnp.float32)
        advantage = generalised_advantages(rewards, values, settings.discount, settings.trace_decay)
        steps = Transitions(
            episode.inputs,
            jnp.broadcast_to(problem.mask, episode.inputs.shape[:2]),
            time,
            episode.choice,
            episode.log_probability,
            advantage,
            advantage + values,
        )
        return steps, jnp.mean(rewards)

    steps, rewards = jax.vmap(one)(jax.random.split(key, training.episodes))
    flat: Any = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), steps)
    return flat, jnp.mean(rewards)


def validate(
    network: ReLUNetwork, tasks: KnownTasks, rows: Int[Array, " v"], horizon: int
) -> Float[Array, ""]:
    """Mean simple regret of the most probable choices, over the steps of an episode on each of some tasks."""

    def regret(row: Array) -> Array:
        # The most probable choice needs no randomness.
        return play(network, tasks.problem(row), horizon, most_probable, jax.random.key(0)).regret

    return jnp.mean(jax.vmap(regret)(rows))


def run_iterations(
    training: MAFTraining, tasks: KnownTasks, own: TasksOfJob, course: Course
) -> tuple[Course, tuple[Array, Array]]:
    """The iterations of one call: rewards before, and validation regrets after each."""

    def iteration(course: Course, _: None) -> tuple[Course, tuple[Array, Array]]:
        key, record_key, update_key = jax.random.split(course.key, 3)
        batch, reward = record(course.networks, tasks, own, training, record_key)
        before = course.networks, course.optimizer
        networks, optimizer = improve(*before, batch, update_key, training.optimization)
        regret = validate(networks.policy, tasks, own.validation, training.horizon)
        better = regret < course.lowest_regret
        best: Any = jax.tree.map(partial(jnp.where, better), networks.policy, course.best)
        lowest = jnp.minimum(regret, course.lowest_regret)
        return Course(networks, optimizer, key, best, lowest), (reward, regret)

    return lax.scan(iteration, course, length=training.iterations_per_call)
