"""Offline Bayesian optimization: all runs of a method, tasks and seeds together, as one compiled program."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.methods.protocol import Policy, State
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain import Progress, no_progress
from hyperbo.tuning_data import Task, pad_tasks


@dataclass(frozen=True)
class Run:
    """One run of Bayesian optimization: a policy on a test task from a seed."""

    policy: Policy
    task: Task
    seed: int


@pytree
class _Problem:
    """A test task as a finite set of candidates, padded; or those of all runs, stacked."""

    x: Float[Array, "*runs c d"]
    y: Float[Array, "*runs c"]
    mask: Bool[Array, "*runs c"]


def _start(iterations: int, policy: Policy, problem: _Problem) -> State:
    return policy.start(problem.x, iterations)


def _iterate(
    count: int, begin: Int[Array, ""], policy: Policy, problem: _Problem, stream: Array, state: State
) -> tuple[State, Int[Array, " count"], Bool[Array, ""]]:
    """`count` iterations of one run: its state, the candidates chosen, whether all scores were numbers."""

    def step(state: State, step: Array) -> tuple[State, tuple[Array, Array]]:
        seed, task = stream
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), task), step)
        state, scores = policy.score(state, step, key)
        usable = ~jnp.any(jnp.isnan(scores) & problem.mask)
        choice = jnp.argmax(jnp.where(problem.mask, scores, -jnp.inf))
        return policy.observe(state, step, choice, problem.y[choice]), (choice, usable)

    state, (choices, usable) = lax.scan(step, state, begin + jnp.arange(count))
    return state, choices, jnp.all(usable)


@double_precision
def simulate(
    runs: Sequence[Run], iterations: int, *, iterations_per_call: int = 10, progress: Progress = no_progress
) -> Int[np.ndarray, "runs iterations"]:
    """Run Bayesian optimization on the finite candidates of each run's task.

    Protocol of section "Results on the PD1 Offline Hyperparameter Tuning Tasks": the candidates are the
    test task's trials that did not diverge, no initial data, the same candidate may be observed again.

    Args:
      runs: policies of one structure, each with its task and seed.
      iterations: observations per run.
      iterations_per_call: iterations between two lines of progress.
      progress: called with iterations done and in all.

    Returns:
      The candidate chosen in each iteration of each run, as a row of its task.

    Raises:
      InvalidInputError: there is no run, or `iterations_per_call` does not divide `iterations`.
      NumericalError: a policy scored a candidate NaN.
    """
    if not runs:
        raise InvalidInputError("no run to simulate")
    if iterations < 1 or iterations % iterations_per_call:
        raise InvalidInputError(
            f"iterations = {iterations} is no positive multiple of "
            f"iterations_per_call = {iterations_per_call}"
        )
    padded = pad_tasks([run.task for run in runs])
    policies: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *(run.policy for run in runs))
    # A stream of random numbers for every seed and task: tasks of equal size must not share their draws.
    streams = np.array([[run.seed, zlib.crc32(run.task.name.encode())] for run in runs], np.uint32)
    problems = _Problem(*map(jnp.asarray, (padded.x, padded.y, padded.mask)))
    policies, problems, streams = pad_batch((policies, problems, streams))
    state = batched(partial(_start, iterations))(policies, problems)
    run_some = batched(partial(_iterate, iterations_per_call), shared=1)
    chosen: list[np.ndarray] = []
    for begin in range(0, iterations, iterations_per_call):
        progress(begin, iterations)
        state, choices, usable = run_some(jnp.asarray(begin), policies, problems, streams, state)
        usable = np.asarray(usable)[: len(runs)]
        if not usable.all():
            run = runs[int(np.argmin(usable))]
            raise NumericalError(
                f"{type(run.policy).__name__} scored a candidate NaN on task {run.task.name!r} with seed "
                f"{run.seed}, between iterations {begin + 1} and {begin + iterations_per_call}"
            )
        chosen.append(np.asarray(choices)[: len(runs)])
    progress(iterations, iterations)
    return np.concatenate(chosen, axis=1)


def run_records(
    method: str, runs: Sequence[Run], choices: Int[np.ndarray, "runs iterations"]
) -> pd.DataFrame:
    """Write runs down as records, one row per observation: what `hyperbo.evaluation` reads."""
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "task": run.task.name,
                "task_dataset": run.task.dataset,
                "seed": run.seed,
                "iteration": np.arange(1, len(row) + 1),
                "trial_id": np.array(run.task.trial_ids, dtype=object)[row],
                "y": run.task.y[row],
                "objective": run.task.objective[row],
                "y_max": run.task.y.max(),
            }
        )
        for run, row in zip(runs, choices, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)
