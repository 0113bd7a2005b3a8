"""Pre-training by L-BFGS on all the data of a job: what EKL and weighted sums share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from hyperbo.checkpoints import CheckpointFolder
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.optimizers import LBFGSState, best_start, continue_lbfgs, start_lbfgs
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain.jobs import Job, Pretrained, Progress, collect, identity

# Of a model, data shared by all jobs and a job's own: the objective, and the largest jitter it needed.
Objective = Callable[[GaussianProcess, Any, Any], tuple[Array, Array]]


@dataclass(frozen=True)
class LBFGSTraining:
    """Settings of a training by L-BFGS.

    Attributes:
      iterations: from every start; the paper uses 100.
      restarts: how many starts; the best end counts.
      tolerance: stop once an iteration lowers the objective by no more than this share; None: never.
      iterations_per_call: iterations per call of the compiled loop, between two lines of progress; the last
        call does what is left.
    """

    iterations: int = 100
    restarts: int = 1
    tolerance: float | None = None
    iterations_per_call: int = 10

    def __post_init__(self) -> None:
        name = type(self).__name__
        for setting in ("iterations", "restarts", "iterations_per_call"):
            if getattr(self, setting) < 1:
                raise InvalidInputError(f"{setting} = {getattr(self, setting)} is not positive", where=name)
        if self.tolerance is not None and not self.tolerance >= 0.0:
            raise InvalidInputError(f"tolerance = {self.tolerance} is negative", where=name, fix="or None")


def pretrain_lbfgs(
    jobs: Sequence[Job],
    architecture: Architecture,
    training: LBFGSTraining,
    objective: Objective,
    shared: Any,
    own: Any,
    started: float,
    progress: Progress,
    checkpoint: CheckpointFolder | None,
) -> list[Pretrained]:
    """Pre-train one model per job, all in one compiled loop spread over the devices.

    Args:
      jobs: training sets and seeds.
      architecture: structure of every model.
      training: settings of the objective and the optimiser; their type names the objective.
      objective: what is minimised.
      shared: data of all jobs, a pytree.
      own: data of each job, a pytree whose leaves carry a leading axis of jobs.
      started: `time.perf_counter` when the training began.
      progress: called with iterations done and in all.
      checkpoint: where to go on from and to leave checkpoints.

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

    name = type(training).__name__
    opened = checkpoint.open(identity(name, jobs, architecture, training)) if checkpoint else nullcontext()
    with opened as checkpoints:
        done = 0
        if checkpoints is not None:
            done, state = checkpoints.restore(state)
        while done < calls:
            progress(done * training.iterations_per_call, training.iterations)
            state = jax.block_until_ready(run(shared, own, state))
            done += 1
            due = checkpoint is not None and (done % checkpoint.every_calls == 0 or done == calls)
            if checkpoints is not None and due:
                checkpoints.save(done, state)
    gp, losses, jitter = batched(partial(_best, objective), shared=1)(shared, own, state)
    progress(training.iterations, training.iterations)
    return collect(jobs, gp, np.asarray(losses), np.asarray(jitter), started)


def _start(
    dimension: int,
    architecture: Architecture,
    training: LBFGSTraining,
    objective: Objective,
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
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def _continue(
    training: LBFGSTraining, objective: Objective, shared: Any, own: Any, state: LBFGSState
) -> LBFGSState:
    """`iterations_per_call` iterations from every start of one model, one start after the other."""

    def value(gp: GaussianProcess) -> Array:
        return objective(gp, shared, own)[0]

    def from_start(state: LBFGSState) -> LBFGSState:
        return continue_lbfgs(value, state, training.iterations_per_call, training.tolerance)

    return lax.map(from_start, state)


def _best(
    objective: Objective, shared: Any, own: Any, state: LBFGSState
) -> tuple[GaussianProcess, Array, Array]:
    """The model that ended lowest, its losses with the last one, and the jitter needed there."""
    best: int | Array = 0
    if state.done.shape[0] > 1:
        best = best_start(lax.map(lambda gp: objective(gp, shared, own)[0], state.params))
    gp: GaussianProcess = jax.tree.map(lambda leaf: leaf[best], state.params)
    last, jitter = objective(gp, shared, own)
    return gp, jnp.append(state.values[best], last), jitter
