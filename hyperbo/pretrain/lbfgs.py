"""Pre-training by L-BFGS on all the data of a job: what EKL and weighted sums share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from hyperbo.compute.checkpoints import CheckpointFolder, run_calls
from hyperbo.compute.optimizers import LBFGSState, best_start, continue_lbfgs, start_lbfgs
from hyperbo.compute.parallel import batched, pad_batch, stack
from hyperbo.errors import InvalidInputError, require_positive
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, collect, identity

# Of a model, data shared by all jobs and a job's own: the objective, and the largest jitter it needed.
Loss = Callable[[GaussianProcess, Any, Any], tuple[Array, Array]]


@dataclass(frozen=True)
class LBFGSTraining:
    """Settings of a training by L-BFGS.

    Attributes:
      iterations: from every start; the paper uses 100.
      restarts: number of starts; the model that ends lowest counts.
      tolerance: stop once an iteration lowers the objective by no more than this share; None: never.
      iterations_per_call: iterations per call of the compiled loop, between two lines of progress; the last
        call does what is left.
    """

    iterations: int = 100
    restarts: int = 1
    tolerance: float | None = None
    iterations_per_call: int = 10

    def __post_init__(self) -> None:
        require_positive(self, "iterations", "restarts", "iterations_per_call")
        if self.tolerance is not None and not self.tolerance >= 0.0:
            where = type(self).__name__
            raise InvalidInputError(f"tolerance = {self.tolerance} is negative", where=where, fix="or None")


def pretrain_lbfgs(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: LBFGSTraining,
    objective: Loss,
    shared: Any,
    own: Any,
    started: float,
    progress: Progress,
    checkpoint: CheckpointFolder | None,
) -> list[Pretrained]:
    """Pre-train one model per job, all in one compiled loop spread over the devices.

    Data of all jobs are in the pytree `shared`; the leaves of `own` carry a leading axis of jobs. `started`
    is the `time.perf_counter` when the training began. The type of `training` names the objective.

    Raises:
      TrainingError: a model's loss or parameters are not finite at the end; the others come with the error.
      VersionConflictError: the checkpoint is of other jobs, settings, code or devices.
    """
    own, seeds = pad_batch((own, np.array([job.seed for job in jobs])))
    dimension = jobs[0].training.search_space.dimension
    start = partial(_start, dimension, architecture, training, objective)
    state = batched(start, shared=1)(shared, own, seeds)
    run = batched(partial(_continue, training, objective), shared=1)
    calls = -(-training.iterations // training.iterations_per_call)

    def call(state: LBFGSState, done: int) -> LBFGSState:
        progress(done * training.iterations_per_call, training.iterations)
        return jax.block_until_ready(run(shared, own, state))

    settings = partial(identity, type(training).__name__, jobs, architecture, training)
    state = run_calls(state, calls, call, checkpoint, settings)
    gp, losses, jitter = batched(partial(_best, objective), shared=1)(shared, own, state)
    progress(training.iterations, training.iterations)
    return collect(jobs, gp, list(np.asarray(losses)), np.asarray(jitter), training, started)


def _start(
    dimension: int,
    architecture: Architecture,
    training: LBFGSTraining,
    objective: Loss,
    shared: Any,
    own: Any,
    seed: Array,
) -> LBFGSState:
    """All starts of one model; the first is that of a training without restarts."""
    weight_key, _ = jax.random.split(jax.random.key(seed))
    others = [jax.random.fold_in(weight_key, number) for number in range(1, training.restarts)]
    states = [
        start_lbfgs(
            lambda gp: objective(gp, shared, own)[0],
            initialise(key, dimension, architecture),
            training.iterations,
        )
        for key in (weight_key, *others)
    ]
    return stack(states)


def _continue(
    training: LBFGSTraining, objective: Loss, shared: Any, own: Any, state: LBFGSState
) -> LBFGSState:
    """`iterations_per_call` iterations from every start of one model, one start after the other."""

    def value(gp: GaussianProcess) -> Array:
        return objective(gp, shared, own)[0]

    count, tolerance = training.iterations_per_call, training.tolerance
    return lax.map(lambda start: continue_lbfgs(value, start, count, tolerance), state)


def _best(objective: Loss, shared: Any, own: Any, state: LBFGSState) -> tuple[GaussianProcess, Array, Array]:
    """The model that ended lowest, its losses with the last one, and the jitter needed there."""
    best: int | Array = 0
    if state.done.shape[0] > 1:
        best = best_start(lax.map(lambda gp: objective(gp, shared, own)[0], state.params))
    gp: GaussianProcess = jax.tree.map(lambda leaf: leaf[best], state.params)
    last, jitter = objective(gp, shared, own)
    return gp, jnp.append(state.values[best], last), jitter
