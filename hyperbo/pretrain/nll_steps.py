"""Steps of pre-training by NLL: their settings, and what they do to one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import task_nll
from hyperbo.pretrain.group_dro import exponentiated_gradient
from hyperbo.pretrain.task_table import TaskTable, draw_points, draw_tasks


@dataclass(frozen=True)
class NLLTraining:
    """Adam on minibatches, section "Description of All Compared Methods", H-NLL.

    Attributes:
      steps: the paper uses 50,000.
      points_per_task: drawn uniformly without replacement from every task in every step.
      learning_rate: of Adam.
      steps_per_call: steps per call of the compiled loop, between two lines of progress.
      tasks_per_step: tasks drawn uniformly with replacement in every step, so that its cost does not depend
        on their number; None: all tasks in every step, as in the paper.
      group_dro_step: step size of group DRO's exponentiated gradient, per nat; the task weights are where it
        starts. None: the task weights stay as they are, as in the paper.
      stop_after: calls in a row without a loss lower than all before, after which a model's training stops;
        None: never.
      precision: of the steps, their parameters, covariances and losses; a trained model is float64 either
        way. float32 is faster; its rounding asks for jitter where the noise variance is very small
        beside the signal variance, which is reported (docs/decisions/method-choices.md).
    """

    steps: int = 50_000
    points_per_task: int = 50
    learning_rate: float = 1e-3
    steps_per_call: int = 500
    tasks_per_step: int | None = None
    group_dro_step: float | None = None
    stop_after: int | None = None
    precision: str = "float64"

    def __post_init__(self) -> None:
        for name in ("steps", "points_per_task", "steps_per_call", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)} is not positive", where="NLLTraining"
                )
        for name in ("tasks_per_step", "group_dro_step", "stop_after"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)} is not positive", where="NLLTraining", fix="or None"
                )
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
    return NLLState(gp, _adam(training).init(gp), draw_key, log_weights)


def _adam(training: NLLTraining) -> optax.GradientTransformation:
    return optax.adam(training.learning_rate)


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
) -> tuple[NLLState, Float[Array, ""], Float[Array, ""]]:
    """`steps_per_call` steps of Adam for one model; the mean loss and the largest jitter."""
    optimizer = _adam(training)
    sizes = table.sizes[tasks.rows]
    count = min(training.points_per_task, table.y.shape[1])

    def step(state: NLLState, _: None) -> tuple[NLLState, tuple[Array, Array]]:
        key, draw = jax.random.split(state.key)
        rows, weights, chosen = tasks.rows, tasks.weights, slice(None)
        if state.log_weights is not None:
            weights = tasks.count * jnp.exp(state.log_weights)
        if training.tasks_per_step is not None:
            task_key, draw = jax.random.split(draw)
            chosen = draw_tasks(task_key, tasks.count, training.tasks_per_step)
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
        gp: Any = optax.apply_updates(params, updates)
        return NLLState(gp, optimizer_state, key, log_weights), (value, jitter)

    state, (values, jitters) = lax.scan(step, state, length=training.steps_per_call)
    return state, jnp.mean(values), jnp.max(jitters)
