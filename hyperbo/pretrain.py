"""Pre-training: minimise NLL or EKL over the tasks of many training sets at once, each from its own seed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Float64, Int, PRNGKeyArray

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.objectives import MatchedEstimate, ekl_minimised, task_nll
from hyperbo.optimizers import minimise_lbfgs
from hyperbo.parallel import batched, pad_batch
from hyperbo.tuning_data import MatchedBlock, TuningData, pad_tasks

Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class Job:
    """One model to pre-train: on which tasks, from which seed."""

    training: TuningData
    seed: int


@dataclass(frozen=True)
class NLLTraining:
    """Adam on minibatches, section "Description of All Compared Methods", H-NLL.

    Attributes:
      steps: the paper uses 50,000.
      points_per_task: drawn uniformly without replacement from every task in every step.
      learning_rate: of Adam.
      steps_per_call: steps per call of the compiled loop, between two lines of progress.
    """

    steps: int = 50_000
    points_per_task: int = 50
    learning_rate: float = 1e-3
    steps_per_call: int = 500

    def __post_init__(self) -> None:
        for name in ("steps", "points_per_task", "steps_per_call", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)} is not positive", where="NLLTraining"
                )
        if self.steps % self.steps_per_call:
            raise InvalidInputError(
                f"steps = {self.steps} is no multiple of steps_per_call = {self.steps_per_call}",
                where="NLLTraining",
                fix="choose a divisor, so that one compiled program serves every call",
            )


@dataclass(frozen=True)
class EKLTraining:
    """L-BFGS on all matched inputs, section "Description of All Compared Methods", H-EKL."""

    iterations: int = 100

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise InvalidInputError(f"iterations = {self.iterations} is not positive", where="EKLTraining")


@dataclass(frozen=True)
class Pretrained:
    """A pre-trained Gaussian process and how its training went.

    Attributes:
      gp: the model, its leaves NumPy float64 arrays.
      losses: objective along training: the mean over each call of the loop (NLL, summed over tasks) or
        the value before each iteration (EKL).
      largest_jitter: largest relative jitter that a factorisation needed: of all steps (NLL), or at the
        last point (EKL). More than 0 is also warned of.
      seconds: wall time of the batch divided by the number of its models, compilation included.
    """

    gp: GaussianProcess
    losses: Float64[np.ndarray, " k"]
    largest_jitter: float
    seconds: float


@pytree
class _TaskTable:
    """All tasks of all jobs, once; jobs refer to them by row."""

    x: Float[Array, "t n d"]
    y: Float[Array, "t n"]
    mask: Bool[Array, "t n"]


@pytree
class _NLLState:
    gp: GaussianProcess
    optimizer: optax.OptState
    key: PRNGKeyArray


def _draw_points(
    key: PRNGKeyArray, mask: Bool[Array, "t n"], count: int
) -> tuple[Int[Array, "t count"], Bool[Array, "t count"]]:
    """Draw a uniform subset of every task's rows; tasks with fewer rows than `count` give all they have.

    Every task has a key of its own, so that what is drawn does not depend on the padding: a model is the same
    whether it is trained alone or in a batch.
    """
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(mask.shape[0]))
    uniform = jax.vmap(lambda key: jax.random.uniform(key, mask.shape[1:], jnp.float32))(keys)
    order = jnp.where(mask, uniform, -1.0)
    _, points = lax.top_k(order, min(count, mask.shape[1]))
    return points, jnp.take_along_axis(mask, points, axis=1)


def _nll_steps(
    optimizer: optax.GradientTransformation,
    training: NLLTraining,
    table: _TaskTable,
    rows: Int[Array, " t"],
    weights: Float[Array, " t"],
    state: _NLLState,
) -> tuple[_NLLState, Float[Array, ""], Float[Array, ""]]:
    """`steps_per_call` steps of Adam for one model; the mean loss and the largest jitter."""
    mask = table.mask[rows]

    def loss(gp: GaussianProcess, points: Array, drawn: Array) -> tuple[Array, Array]:
        x, y = table.x[rows[:, None], points], table.y[rows[:, None], points]
        values, jitters = jax.vmap(task_nll, in_axes=(None, 0, 0, 0))(gp, x, y, drawn)
        return weights @ values, jnp.max(jitters)

    def step(state: _NLLState, _: None) -> tuple[_NLLState, tuple[Array, Array]]:
        key, draw = jax.random.split(state.key)
        points, drawn = _draw_points(draw, mask, training.points_per_task)
        (value, jitter), gradient = jax.value_and_grad(loss, has_aux=True)(state.gp, points, drawn)
        params: Any = state.gp  # optax's types know nested containers, not registered pytrees
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, params)
        gp: Any = optax.apply_updates(params, updates)
        return _NLLState(gp, optimizer_state, key), (value, jitter)

    state, (values, jitters) = lax.scan(step, state, length=training.steps_per_call)
    return state, jnp.mean(values), jnp.max(jitters)


@double_precision
def pretrain_nll(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: NLLTraining,
    progress: Progress = no_progress,
) -> list[Pretrained]:
    """Pre-train one model per job by NLL, Eq. (nll), all in one compiled loop spread over the devices.

    The loss of a step is the sum over the job's tasks, as in the paper's training.

    Args:
      jobs: training sets and seeds; they may share tasks.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called with steps done and steps in all.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, or the jobs' search spaces differ.
      NumericalError: a model's loss or parameters are not finite at the end.
    """
    _check_jobs(jobs)
    started = time.perf_counter()
    tasks = list({id(task): task for job in jobs for task in job.training.tasks}.values())
    row_of = {id(task): row for row, task in enumerate(tasks)}
    padded = pad_tasks(tasks)
    table = _TaskTable(*map(jnp.asarray, (padded.x, padded.y, padded.mask)))
    longest = max(len(job.training.tasks) for job in jobs)
    rows = np.zeros((len(jobs), longest), np.int32)
    weights = np.zeros((len(jobs), longest))
    for i, job in enumerate(jobs):
        own = [row_of[id(task)] for task in job.training.tasks]
        # A job with fewer tasks repeats its first one at weight zero.
        rows[i] = own + own[:1] * (longest - len(own))
        weights[i, : len(own)] = 1.0

    optimizer = optax.adam(training.learning_rate)

    def start(seed: Int[Array, ""]) -> _NLLState:
        weight_key, draw_key = jax.random.split(jax.random.key(seed))
        gp: Any = initialise(weight_key, tasks[0].x.shape[1], architecture)
        return _NLLState(gp, optimizer.init(gp), draw_key)

    split = pad_batch((rows, weights, np.array([job.seed for job in jobs])))
    state = batched(start)(split[2])
    run = batched(partial(_nll_steps, optimizer, training), shared=1)
    losses: list[np.ndarray] = []
    jitter = np.zeros(())
    for done in range(0, training.steps, training.steps_per_call):
        progress(done, training.steps)
        state, loss, largest = run(table, split[0], split[1], state)
        losses.append(np.asarray(loss))
        jitter = np.maximum(jitter, largest)
    jax.block_until_ready(state)
    progress(training.steps, training.steps)
    return _collect(jobs, state.gp, np.stack(losses, axis=1), jitter, started)


def matched_estimate(block: MatchedBlock, inputs: int, tasks: int) -> MatchedEstimate:
    """Estimate a complete block's Gaussian, Eq. (estimate_mean_cov), padded to `inputs` and `tasks`."""
    count, columns = block.y.shape
    mean = block.y.mean(axis=1)
    root = (block.y - mean[:, None]) / np.sqrt(columns)
    rows = (0, inputs - count)
    return MatchedEstimate(
        jnp.pad(block.x, (rows, (0, 0))),
        jnp.pad(mean, rows),
        jnp.pad(root, (rows, (0, tasks - columns))),
        jnp.arange(inputs) < count,
    )


def training_blocks(training: TuningData) -> list[MatchedBlock]:
    """The matched blocks that EKL trains on: at least two tasks, only inputs that diverged on none.

    Raises:
      InvalidInputError: nothing matched is left.
    """
    names = [task.name for task in training.tasks]
    complete = [block.complete(names) for block in training.blocks]
    usable = [block for block in complete if len(block.tasks) >= 2 and len(block.x) >= 1]
    if not usable:
        raise InvalidInputError(
            "no matched input that diverged on none of the training tasks",
            where=training.provenance.dataset,
            fix="train by NLL, which needs no matched data",
        )
    return usable


@double_precision
def pretrain_ekl(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: EKLTraining,
    progress: Progress = no_progress,
) -> list[Pretrained]:
    """Pre-train one model per job by EKL averaged over its matched blocks, Eq. (multi-kl).

    Args:
      jobs: training sets and seeds.
      architecture: structure of every model.
      training: settings of the optimiser.
      progress: called before and after with iterations done and in all.

    Returns:
      One model per job, in order.

    Raises:
      InvalidInputError: there is no job, one has no matched data, or their search spaces differ.
      NumericalError: a model's loss or parameters are not finite at the end.
    """
    _check_jobs(jobs)
    started = time.perf_counter()
    progress(0, training.iterations)
    blocks = [training_blocks(job.training) for job in jobs]
    most = max(map(len, blocks))
    inputs = max(len(block.x) for of_job in blocks for block in of_job)
    columns = max(len(block.tasks) for of_job in blocks for block in of_job)
    # A job with fewer blocks repeats its first one at weight zero.
    estimates = [
        [matched_estimate(block, inputs, columns) for block in of_job + of_job[:1] * (most - len(of_job))]
        for of_job in blocks
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(e for of_job in estimates for e in of_job))
    stacked = jax.tree.map(lambda leaf: leaf.reshape(len(jobs), most, *leaf.shape[1:]), stacked)
    weights = np.array([[(q < len(b)) / len(b) for q in range(most)] for b in blocks])
    dimension = jobs[0].training.search_space.dimension

    def train(estimate: MatchedEstimate, weight: Array, seed: Array) -> tuple[GaussianProcess, Array, Array]:
        def values(gp: GaussianProcess) -> tuple[Array, Array]:
            return jax.vmap(ekl_minimised, in_axes=(None, 0))(gp, estimate)

        weight_key, _ = jax.random.split(jax.random.key(seed))
        gp = initialise(weight_key, dimension, architecture)
        gp, losses = minimise_lbfgs(lambda gp: weight @ values(gp)[0], gp, training.iterations)
        last, jitters = values(gp)
        return gp, jnp.append(losses, weight @ last), jnp.max(jitters)

    split = pad_batch((stacked, weights, np.array([job.seed for job in jobs])))
    gp, losses, jitter = jax.block_until_ready(batched(train)(*split))
    progress(training.iterations, training.iterations)
    return _collect(jobs, gp, np.asarray(losses), np.asarray(jitter), started)


def _check_jobs(jobs: Sequence[Job]) -> None:
    if not jobs:
        raise InvalidInputError("no model to pre-train")
    if len({job.training.search_space for job in jobs}) > 1:
        raise InvalidInputError("the jobs of a batch differ in their search spaces", fix="train them apart")


def _collect(
    jobs: Sequence[Job],
    gps: GaussianProcess,
    losses: Float64[np.ndarray, "j k"],
    jitters: Float64[np.ndarray, " j"],
    started: float,
) -> list[Pretrained]:
    leaves: Any = jax.tree.map(np.asarray, gps)
    seconds = (time.perf_counter() - started) / len(jobs)
    results = []
    for i, job in enumerate(jobs):
        gp = jax.tree.map(lambda leaf, i=i: np.array(leaf[i]), leaves)
        finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gp))
        if not finite or not np.isfinite(losses[i]).all():
            raise NumericalError(
                f"pre-training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} "
                f"with seed {job.seed} ended with a loss or parameters that are not finite; "
                "look for extreme y values, or lower the learning rate"
            )
        if jitters[i] > 0.0:
            warnings.warn(
                f"pre-training on {len(job.training.tasks)} tasks of {job.training.provenance.dataset} with "
                f"seed {job.seed}: a covariance needed a relative jitter of {jitters[i]:.0e}",
                stacklevel=3,
            )
        results.append(Pretrained(gp, losses[i], float(jitters[i]), seconds))
    return results
