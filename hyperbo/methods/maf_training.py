"""Training of an acquisition function by reinforcement learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.pytree import pytree
from hyperbo.methods.acquisition_network import (
    EXTRA_INPUTS,
    ReLUNetwork,
    initialise_network,
    step_and_horizon,
)
from hyperbo.methods.episodes import KnownTasks, most_probable, play
from hyperbo.methods.policy_gradient import (
    ActorCritic,
    PolicyGradient,
    Transitions,
    generalised_advantages,
    improve,
)
from hyperbo.methods.task_gp import TaskGP
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain import Job, Progress, no_progress
from hyperbo.pretrain.jobs import check_jobs
from hyperbo.pretrain.task_table import tasks_of_jobs


@dataclass(frozen=True)
class MAFTraining:
    """Settings of the training.

    "Published" is what the published code of Volpp et al. uses for hyperparameter optimization; "paper" is
    appendix "MAF Implementation Details", which takes all else from there.

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
        for name in (
            "horizon",
            "episodes",
            "candidates",
            "iterations",
            "validation_tasks",
            "iterations_per_call",
        ):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} = {getattr(self, name)} is not positive", where=where)
        for name in ("weight_scale", "minimum_regret"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise InvalidInputError(f"{name} = {getattr(self, name)} is not positive", where=where)
        if self.hidden and min(self.hidden) < 1:
            raise InvalidInputError(f"hidden = {self.hidden} has an empty layer", where=where)
        for part, whole, name in (
            (self.iterations_per_call, self.iterations, "iterations_per_call"),
            (self.optimization.minibatch, self.episodes * self.horizon, "minibatch"),
        ):
            if whole % part:
                raise InvalidInputError(f"{name} = {part} does not divide {whole}", where=where)


@pytree
class TrainedAcquisition:
    """What a training leaves, as NumPy arrays.

    Attributes:
      network: the policy after the best iteration.
      rewards: mean reward per step of the episodes of every iteration, before its updates.
      validation_regrets: mean simple regret, over the steps and the validation tasks, after every iteration.
    """

    network: ReLUNetwork
    rewards: Float[np.ndarray | Array, " i"]
    validation_regrets: Float[np.ndarray | Array, " i"]


@pytree
class _Own:
    """Of one job, or of all, stacked: rows of the table, weights of the tasks, rows to validate on, seed."""

    rows: Int[Array, "*jobs t"]
    weights: Float[Array, "*jobs t"]
    validation: Int[Array, "*jobs v"]
    seed: Int[Array, "*jobs"]


@pytree
class _Course:
    """Training between two iterations."""

    networks: ActorCritic
    optimizer: Any
    key: PRNGKeyArray
    best: ReLUNetwork
    lowest_regret: Float[Array, ""]


def _start(training: MAFTraining, dimension: int, own: _Own) -> _Course:
    policy_key, value_key, key = jax.random.split(jax.random.key(own.seed), 3)
    policy, value = (
        initialise_network(network_key, inputs, training.hidden, training.weight_scale)
        for network_key, inputs in ((policy_key, dimension + EXTRA_INPUTS), (value_key, 2))
    )
    networks: Any = ActorCritic(policy, value)
    optimizer = optax.adam(training.optimization.learning_rate).init(networks)
    return _Course(networks, optimizer, key, policy, jnp.asarray(jnp.inf, jnp.float64))


def record(
    networks: ActorCritic, tasks: KnownTasks, own: _Own, training: MAFTraining, key: PRNGKeyArray
) -> tuple[Transitions, Float[Array, ""]]:
    """Play the episodes of one iteration.

    The reward of a step is -log10(r + minimum_regret), r the simple regret after it.

    Returns:
      Their steps, and the mean reward per step.
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


def _iterations(
    training: MAFTraining, tasks: KnownTasks, own: _Own, course: _Course
) -> tuple[_Course, tuple[Array, Array]]:
    """The iterations of one call: rewards before, and validation regrets after each."""

    def iteration(course: _Course, _: None) -> tuple[_Course, tuple[Array, Array]]:
        key, record_key, update_key = jax.random.split(course.key, 3)
        batch, reward = record(course.networks, tasks, own, training, record_key)
        networks, optimizer = improve(
            course.networks, course.optimizer, batch, update_key, training.optimization
        )
        regret = validate(networks.policy, tasks, own.validation, training.horizon)
        better = regret < course.lowest_regret
        best: Any = jax.tree.map(partial(jnp.where, better), networks.policy, course.best)
        lowest = jnp.minimum(regret, course.lowest_regret)
        return _Course(networks, optimizer, key, best, lowest), (reward, regret)

    return lax.scan(iteration, course, length=training.iterations_per_call)


def train_acquisition(
    jobs: Sequence[Job], task_gp: TaskGP, training: MAFTraining, progress: Progress = no_progress
) -> list[TrainedAcquisition]:
    """Train one acquisition function per job, all in one compiled loop spread over the devices.

    Args:
      jobs: training tasks, drawn for episodes in proportion to their weights, and seeds.
      task_gp: of every training task.
      training: settings.
      progress: called with iterations done and in all.

    Returns:
      One network per job, in order.

    Raises:
      InvalidInputError: there is no job, the search spaces differ, or a job has fewer tasks than
        `validation_tasks`.
      NumericalError: the Gaussian process of a task, or the course of a training, is not finite.
    """
    check_jobs(jobs)
    for job in jobs:
        if len(job.training.tasks) < training.validation_tasks:
            raise InvalidInputError(
                f"validation_tasks = {training.validation_tasks}, but a job has "
                f"{len(job.training.tasks)} tasks",
                where=job.training.provenance.dataset,
                fix="lower validation_tasks",
            )
    in_jobs = tasks_of_jobs(jobs)
    in_row = {
        row: task
        for job, rows in zip(jobs, in_jobs.rows, strict=True)
        for row, task in zip(rows, job.training.tasks, strict=False)  # padding follows a job's own tasks
    }
    gps: list[Any] = [task_gp.fit(in_row[row]) for row in range(len(in_row))]
    table = in_jobs.table
    tasks = KnownTasks(table.x, table.y, table.mask, jax.tree.map(lambda *leaves: jnp.stack(leaves), *gps))
    validation = np.stack(
        [
            rows[np.random.default_rng(job.seed).choice(count, training.validation_tasks, replace=False)]
            for job, rows, count in zip(jobs, in_jobs.rows, in_jobs.counts, strict=True)
        ]
    )
    seeds = np.array([job.seed for job in jobs])
    own = pad_batch(_Own(*map(jnp.asarray, (in_jobs.rows, in_jobs.weights, validation, seeds))))
    dimension = jobs[0].training.search_space.dimension
    course = batched(partial(_start, training, dimension))(own)
    run = batched(partial(_iterations, training), shared=1)
    curves: list[tuple[np.ndarray, np.ndarray]] = []
    for done in range(0, training.iterations, training.iterations_per_call):
        progress(done, training.iterations)
        course, (rewards, regrets) = run(tasks, own, course)
        curves.append((np.asarray(rewards), np.asarray(regrets)))
    progress(training.iterations, training.iterations)
    rewards, regrets = (np.concatenate(parts, axis=1) for parts in zip(*curves, strict=True))
    networks: Any = jax.tree.map(np.asarray, course.best)
    results = []
    for i, job in enumerate(jobs):
        if not (np.isfinite(rewards[i]).all() and np.isfinite(regrets[i]).all()):
            raise NumericalError(
                f"the training of an acquisition function on {job.training.provenance.dataset} with seed "
                f"{job.seed} is not finite; lower the learning rate, or look for extreme y values"
            )
        network: Any = jax.tree.map(lambda leaf, i=i: np.array(leaf[i]), networks)
        results.append(TrainedAcquisition(network, rewards[i], regrets[i]))
    return results
