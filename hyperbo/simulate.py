"""Offline Bayesian optimization: runs of a method on the recorded trials of its test tasks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float64, Int, Int64, UInt32

from hyperbo.acquisition import best_candidate
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import double_precision
from hyperbo.gp.pytree import pytree
from hyperbo.methods.protocol import Policy
from hyperbo.parallel import batched, pad_batch
from hyperbo.pretrain import Progress, no_progress
from hyperbo.tuning_data import Task, pad_tasks

# A CPU device goes through its runs one by one: few at a time keep memory small and progress alive.
CPU_RUNS_PER_DEVICE = 4


@dataclass(frozen=True)
class Run:
    """One run of Bayesian optimization.

    Attributes:
      policy: what chooses.
      task: the test task; its trials are the candidates.
      seed: of the run's random numbers.
      initial: rows of the task that are observed before the policy is asked, as HPO-B prescribes them.
    """

    policy: Policy
    task: Task
    seed: int
    initial: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        unknown = [row for row in self.initial if not 0 <= row < len(self.task.y)]
        if unknown:
            raise InvalidInputError(
                f"initial rows {unknown} of a task of {len(self.task.y)} trials",
                where=f"task {self.task.name!r}",
            )


@dataclass(frozen=True)
class Simulation:
    """What runs did; every array has a row per run and a column per iteration.

    A run fails where its policy scores a candidate NaN. Its rows mean nothing then.

    Attributes:
      choices: the candidate observed, as a row of the run's task.
      mean: predictive mean of the observation, before it was made; NaN where the policy predicts nothing.
      deviation: its predictive standard deviation, noise included; NaN likewise.
      failures: of each run why it failed; None where it did not.
    """

    choices: Int64[np.ndarray, "runs iterations"]
    mean: Float64[np.ndarray, "runs iterations"]
    deviation: Float64[np.ndarray, "runs iterations"]
    failures: tuple[str | None, ...]

    @classmethod
    def joined(cls, parts: Sequence[Simulation]) -> Simulation:
        """The runs of several simulations, one after another."""
        return cls(
            np.concatenate([part.choices for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.deviation for part in parts]),
            tuple(failure for part in parts for failure in part.failures),
        )

    def rows(self, rows: Sequence[int]) -> Simulation:
        """Some of the runs, in the order given."""
        kept = np.array(rows, np.int64)
        failures = tuple(self.failures[row] for row in rows)
        return Simulation(self.choices[kept], self.mean[kept], self.deviation[kept], failures)

    def require_usable(self) -> Simulation:
        """The simulation, where no run failed.

        Raises:
          NumericalError: a run failed; the message is that of the first.
        """
        for failure in self.failures:
            if failure is not None:
                raise NumericalError(failure)
        return self


# Called with what the next runs did.
Finished = Callable[[Simulation], object]


def _nobody(part: Simulation) -> None:
    """Tell nobody."""


@pytree
class _Problem:
    """The padded candidates of a run's task and its stream of random numbers; or those of all runs."""

    x: Float[Array, "*runs c d"]
    y: Float[Array, "*runs c"]
    mask: Bool[Array, "*runs c"]
    initial: Int[Array, "*runs i"]
    stream: UInt32[Array, "*runs 2"]


def _run(iterations: int, repeats: bool, policy: Policy, problem: _Problem) -> tuple[Array, ...]:
    """One run: the candidates chosen, what was predicted of them, whether all scores were numbers."""
    seed, task = problem.stream
    task_key = jax.random.fold_in(jax.random.key(seed), task)
    count = problem.initial.shape[0]

    def observe(state: Any, step: Array, candidate: Array) -> Any:
        return policy.observe(state, step, candidate, problem.y[candidate])

    def observe_initial(state: Any, row: tuple[Array, Array]) -> tuple[Any, None]:
        return observe(state, *row), None

    def iterate(carry: tuple[Any, Array], step: Array) -> tuple[tuple[Any, Array], tuple[Array, ...]]:
        state, available = carry
        key = jax.random.fold_in(task_key, step)
        state, scores = policy.score(state, step, key)
        usable = ~jnp.any(jnp.isnan(scores.values) & problem.mask)
        choice = _break_ties(jax.random.fold_in(key, 1), scores.values, available)
        if not repeats:
            available = available.at[choice].set(False)
        seen = (choice, scores.mean[choice], scores.deviation[choice], usable)
        return (observe(state, step, choice), available), seen

    start = policy.start(problem.x, problem.mask, count + iterations)
    state, _ = lax.scan(observe_initial, start, (jnp.arange(count), problem.initial))
    available = problem.mask if repeats else problem.mask.at[problem.initial].set(False)
    _, seen = lax.scan(iterate, (state, available), count + jnp.arange(iterations))
    return seen


def _break_ties(key: Array, values: Float[Array, " c"], available: Bool[Array, " c"]) -> Int[Array, ""]:
    """The best available candidate; of several, any: the order of a task's trials must not decide."""
    first = best_candidate(values, available)
    tied = available & (values == values[first])
    draws = jax.random.uniform(key, values.shape, jnp.float32)
    return lax.cond(
        jnp.sum(tied) > 1, lambda: jnp.argmax(jnp.where(tied, draws, -1.0)).astype(first.dtype), lambda: first
    )


@double_precision
def simulate(
    runs: Sequence[Run],
    iterations: int,
    *,
    repeats: bool = True,
    progress: Progress = no_progress,
    finished: Finished = _nobody,
) -> Simulation:
    """Run Bayesian optimization on the finite candidates of each run's task.

    With repeats and without initial rows this is the protocol of section "Results on the PD1 Offline
    Hyperparameter Tuning Tasks"; without repeats and with the given initial rows that of section "Results on
    the HPO-B Offline Hyperparameter Tuning Tasks".

    Args:
      runs: policies of one structure, each with its task and seed.
      iterations: observations per run beside the initial ones.
      repeats: whether a candidate may be observed again.
      progress: called with runs done and in all.
      finished: called, in the order of the runs, with what the next ones of them did as soon as it is known.

    Returns:
      What was chosen and predicted, and which runs failed (`Simulation.require_usable` makes that an error).
      A run does not depend on the others, nor on the number of devices.

    Raises:
      InvalidInputError: there is no run; there is no iteration; policies differ in structure or runs in the
        number of their initial rows; or, without repeats, a task has too few trials.
    """
    _check(runs, iterations, repeats)
    devices = jax.device_count()
    size = len(runs) if jax.default_backend() != "cpu" else CPU_RUNS_PER_DEVICE * devices
    size = min(size, len(runs))
    longest = max(len(run.task.y) for run in runs)
    execute = _executor(iterations, repeats)
    parts = []
    for begin in range(0, len(runs), size):
        progress(begin, len(runs))
        part = list(runs[begin : begin + size])
        # The last call repeats a run rather than being compiled anew.
        filled = part + part[-1:] * (size - len(part))
        arrays = execute(*pad_batch((_stacked_policies(filled), _problems(filled, longest))))
        choices, mean, deviation, usable = (np.asarray(array)[: len(part)] for array in arrays)
        failures = tuple(map(_failure, part, usable))
        parts.append(
            Simulation(
                choices.astype(np.int64), mean.astype(np.float64), deviation.astype(np.float64), failures
            )
        )
        finished(parts[-1])
    progress(len(runs), len(runs))
    return Simulation.joined(parts)


@cache
def _executor(iterations: int, repeats: bool) -> Callable[..., Any]:
    """The compiled runs; kept, so that a later call with arrays of the same shapes compiles nothing."""
    return batched(partial(_run, iterations, repeats))


def _check(runs: Sequence[Run], iterations: int, repeats: bool) -> None:
    if not runs:
        raise InvalidInputError("no run to simulate")
    if iterations < 1:
        raise InvalidInputError(f"iterations = {iterations} is not positive")
    if len({jax.tree.structure(run.policy) for run in runs}) > 1:
        raise InvalidInputError("the policies differ in structure", fix="simulate each method apart")
    if len({len(run.initial) for run in runs}) > 1:
        raise InvalidInputError("the runs differ in the number of their initial rows")
    for run in () if repeats else runs:
        if len(set(run.initial)) + iterations > len(run.task.y):
            raise InvalidInputError(
                f"{len(run.task.y)} trials are too few for {iterations} iterations without repeats",
                where=f"task {run.task.name!r}",
            )


def _failure(run: Run, usable: Bool[np.ndarray, " iterations"]) -> str | None:
    if usable.all():
        return None
    return (
        f"{type(run.policy).__name__} scored a candidate NaN on task {run.task.name!r} with seed {run.seed}, "
        f"in iteration {int(np.argmin(usable)) + 1}"
    )


def _stacked_policies(runs: Sequence[Run]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(run.policy for run in runs))


def _problems(runs: Sequence[Run], longest: int) -> _Problem:
    padded = pad_tasks([run.task for run in runs], longest)
    initial = np.array([run.initial for run in runs], np.int64).reshape(len(runs), -1)
    # A stream of random numbers for every seed and task: tasks of equal size must not share their draws.
    streams = np.array([[run.seed, zlib.crc32(run.task.name.encode())] for run in runs], np.uint32)
    return _Problem(*map(jnp.asarray, (padded.x, padded.y, padded.mask, initial, streams)))
