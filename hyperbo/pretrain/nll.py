"""Pre-training by NLL: Adam on minibatches of points, and of tasks where there are very many."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Float64, Int, PRNGKeyArray

from hyperbo.compute.checkpoints import CheckpointFolder, run_calls
from hyperbo.compute.parallel import batched, pad_batch
from hyperbo.compute.pytree import pytree
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.objectives.nll import task_nll
from hyperbo.pretrain.convergence import calls_done, next_rates
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, check_jobs, collect, identity, no_progress
from hyperbo.pretrain.task_table import TaskTable, draw_points, tasks_of_jobs


def exponentiated_gradient(
    log_weights: Float[Array, " t"],
    tasks: Int[Array, " k"] | slice,
    losses: Float[Array, " k"],
    step: float,
) -> Float[Array, " t"]:
    r"""Group DRO: one ascent step on the task weights, :math:`w_i \propto w_i \exp(\eta\,\ell_i)`, which sum
    to 1.

    Tasks that the model explains badly gain weight: Sagawa, Koh, Hashimoto and Liang, "Distributionally
    Robust Neural Networks for Group Shifts", ICLR 2020, Algorithm 1. The paper names it as one way to set the
    w_i of Eq. 12 (pre-nll-weight). A weight of 0 stays 0. A task that occurs twice in `tasks` moves twice.
    Losses are in nats, the step eta is per nat.
    """
    return jax.nn.log_softmax(log_weights.at[tasks].add(step * losses))


@dataclass(frozen=True)
class NLLTraining:
    """Adam on minibatches until the loss has converged, then at a falling learning rate.

    The paper's settings (section 7.2 "Description of All Compared Methods", H-NLL) are `NLLTraining.paper()`.

    Attributes:
      steps: at most.
      points_per_task: drawn uniformly without replacement from every task in every step.
      learning_rate: of Adam, until the loss has reached a plateau.
      steps_per_call: steps per call of the compiled loop, between two lines of progress.
      tasks_per_step: tasks drawn uniformly with replacement in every step, so that its cost does not depend
        on their number; None: all tasks in every step, as in the paper.
      group_dro_step: step size of group DRO's exponentiated gradient, per nat; the task weights are where it
        starts. None: the task weights stay as they are, as in the paper.
      patience: calls in a row without a loss lower than all before, after which the learning rate falls to 0
        (`hyperbo.pretrain.convergence`); None: the learning rate stays as it is for all steps.
      precision: of the steps, their parameters, covariances and losses; a trained model is float64 either
        way. float32 is faster; its rounding asks for jitter where the noise variance is very small
        beside the signal variance, which is reported.
    """

    steps: int = 5_000
    points_per_task: int = 50
    learning_rate: float = 1e-2
    steps_per_call: int = 100
    tasks_per_step: int | None = None
    group_dro_step: float | None = None
    patience: int | None = 10
    precision: str = "float64"

    def __post_init__(self) -> None:
        optional = ("tasks_per_step", "group_dro_step", "patience")
        names = ("steps", "points_per_task", "steps_per_call", "learning_rate")
        require_positive(self, *names, optional=optional)
        if self.precision not in ("float64", "float32"):
            raise InvalidInputError(
                f"precision = {self.precision!r}", where="NLLTraining", fix="use float64 or float32"
            )
        if self.steps % self.steps_per_call:
            raise InvalidInputError(
                f"steps = {self.steps} is no multiple of steps_per_call = {self.steps_per_call}",
                where="NLLTraining",
                fix="give a multiple, or a steps_per_call that divides the steps",
            )

    @classmethod
    def paper(cls) -> NLLTraining:
        """Section 7.2 "Description of All Compared Methods", H-NLL: 50,000 steps of Adam at 1e-3."""
        return cls(50_000, learning_rate=1e-3, steps_per_call=500, patience=None)


@pytree
class TasksOfModel:
    """One model's tasks, or those of all: rows of the table, their weights, and how many are its own."""

    rows: Int[Array, "*jobs t"]
    weights: Float[Array, "*jobs t"]
    count: Int[Array, "*jobs"]


@pytree
class NLLState:
    """A model between two steps; `log_weights` of its tasks where group DRO moves them."""

    gp: GaussianProcess
    optimizer: optax.OptState
    key: PRNGKeyArray
    log_weights: Float[Array, " t"] | None


def start_training(
    dimension: int,
    architecture: Architecture,
    training: NLLTraining,
    tasks: TasksOfModel,
    seed: Int[Array, ""],
) -> NLLState:
    """An untrained model, drawn by its seed."""
    weight_key, draw_key = jax.random.split(jax.random.key(seed))
    gp: Any = cast_floats(initialise(weight_key, dimension, architecture), training.precision)
    # Repeated tasks have the weight 0, and keep it: -inf is the fixed point of the exponentiated gradient.
    log_weights = None if training.group_dro_step is None else jnp.log(tasks.weights / jnp.sum(tasks.weights))
    return NLLState(gp, optax.scale_by_adam().init(gp), draw_key, log_weights)


def cast_floats(tree: Any, dtype: str) -> Any:
    """The floating-point leaves of a tree in another precision."""
    return jax.tree.map(
        lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree
    )


def nll_steps(
    training: NLLTraining,
    table: TaskTable,
    tasks: TasksOfModel,
    state: NLLState,
    rates: Float[Array, " 2"],
) -> tuple[NLLState, Float[Array, ""], Float[Array, ""]]:
    """`steps_per_call` steps of Adam for one model; the mean loss and the largest jitter.

    Args:
      training: settings.
      table: the tasks of all models.
      tasks: the model's own.
      state: the model.
      rates: learning rate of the first step, and of the one after the last.
    """
    optimizer = optax.scale_by_adam()
    falling = (rates[1] - rates[0]) / training.steps_per_call
    sizes = table.sizes[tasks.rows]
    count = min(training.points_per_task, table.y.shape[1])

    def step(state: NLLState, number: Array) -> tuple[NLLState, tuple[Array, Array]]:
        key, draw = jax.random.split(state.key)
        rows, weights, chosen = tasks.rows, tasks.weights, slice(None)
        if state.log_weights is not None:
            weights = tasks.count * jnp.exp(state.log_weights)
        if training.tasks_per_step is not None:
            task_key, draw = jax.random.split(draw)
            # With replacement: without, a draw would cost time in proportion to the number of tasks.
            chosen = jax.random.randint(task_key, (training.tasks_per_step,), 0, tasks.count)
            # The step's loss is an unbiased estimate of that of all tasks.
            rows, weights = rows[chosen], weights[chosen] * tasks.count / training.tasks_per_step
        points, drawn = draw_points(draw, sizes[chosen], count)

        def loss(gp: GaussianProcess) -> tuple[Array, tuple[Array, Array]]:
            x, y = table.x[rows[:, None], points], table.y[rows[:, None], points]
            values, jitters = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, x, y, drawn)
            return weights @ values, (values, jnp.max(jitters))

        (value, (values, jitter)), gradient = jax.value_and_grad(loss, has_aux=True)(state.gp)
        log_weights = state.log_weights
        if log_weights is not None and training.group_dro_step is not None:
            log_weights = exponentiated_gradient(log_weights, chosen, values, training.group_dro_step)
        params: Any = state.gp  # optax's types know nested containers, not registered pytrees
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, params)
        rate = (rates[0] + number * falling).astype(value.dtype)
        gp: Any = jax.tree.map(lambda leaf, update: leaf - rate * update, params, updates)
        return NLLState(gp, optimizer_state, key, log_weights), (value, jitter)

    state, (values, jitters) = lax.scan(step, state, jnp.arange(training.steps_per_call))
    return state, jnp.mean(values), jnp.max(jitters)


def steps_if_any(
    training: NLLTraining,
    table: TaskTable,
    tasks: TasksOfModel,
    state: NLLState,
    rates: Float[Array, " 2"],
) -> tuple[NLLState, Float[Array, ""], Float[Array, ""]]:
    """`nll_steps`; a model whose training has ended, so that its rates are 0, stays as it is."""
    nothing = jnp.zeros((), training.precision)
    return lax.cond(
        rates[0] > 0.0,
        lambda: nll_steps(training, table, tasks, state, rates),
        lambda: (state, nothing, nothing),
    )


@pytree
class _Course:
    """Training between two calls: all that a checkpoint must hold."""

    state: NLLState
    losses: Float64[np.ndarray, "calls j"]
    jitter: Float64[np.ndarray, " j"]


@double_precision
def pretrain_nll(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: NLLTraining,
    progress: Progress = no_progress,
    checkpoint: CheckpointFolder | None = None,
) -> list[Pretrained]:
    """Pre-train one model per job by NLL, Eq. 13 (nll), all in one compiled loop spread over the devices.

    The loss of a step is the sum over the job's tasks, as in the paper's training; with task weights, N times
    the weighted mean.

    Args:
      jobs: training sets and seeds; they may share tasks.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called with steps done and steps in all.
      checkpoint: folder of checkpoints, from which an interrupted training goes on; its result is the same to
        the last bit.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    check_jobs(jobs)
    started = time.perf_counter()
    tasks = tasks_of_jobs(jobs)
    of_models, seeds = pad_batch(
        (
            cast_floats(
                TasksOfModel(*map(jnp.asarray, (tasks.rows, tasks.weights, tasks.counts))),
                training.precision,
            ),
            np.array([job.seed for job in jobs]),
        )
    )
    dimension = jobs[0].training.search_space.dimension
    state = batched(partial(start_training, dimension, architecture, training))(of_models, seeds)
    run = batched(partial(steps_if_any, training), shared=1)
    table = cast_floats(tasks.table, training.precision)
    calls = training.steps // training.steps_per_call
    course = _Course(state, np.zeros((calls, len(seeds))), np.zeros(len(seeds)))

    def call(course: _Course, done: int) -> _Course:
        progress(done * training.steps_per_call, training.steps)
        return _call(run, table, of_models, training, course, done)

    settings = partial(identity, "NLL", jobs, architecture, training)
    course = run_calls(course, calls, call, checkpoint, settings)
    jax.block_until_ready(course.state)
    progress(training.steps, training.steps)
    gps = cast_floats(course.state.gp, "float64")
    losses = np.asarray(course.losses)[:, : len(jobs)].T
    return collect(
        jobs,
        gps,
        [of_job[: calls_done(of_job, vars(training))] for of_job in losses],
        np.asarray(course.jitter),
        training,
        started,
    )


def _call(
    run: Any, table: TaskTable, of_models: TasksOfModel, training: NLLTraining, course: _Course, done: int
) -> _Course:
    """One call of the compiled loop; models whose training has ended stay as they are."""
    losses, jitter = np.array(course.losses), np.array(course.jitter)
    shares = np.array([next_rates(of_model[:done], vars(training)) for of_model in losses.T])
    if not shares.any():
        return course
    state, loss, largest = run(table, of_models, course.state, jnp.asarray(training.learning_rate * shares))
    losses[done] = np.asarray(loss)
    return _Course(state, losses, np.maximum(jitter, np.asarray(largest)))
