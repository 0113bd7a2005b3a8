"""Offline Bayesian optimization: runs of a method on the recorded trials of its test tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Bool, Float, Float64, Int, Int64, UInt32

from hyperbo.acquisition.functions import best_candidate
from hyperbo.bayesopt.history import run_key, run_stream
from hyperbo.compute.parallel import batched, pad_batch
from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task, pad_tasks
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.gp.numerics import double_precision
from hyperbo.methods.protocol import Policy
from hyperbo.pretrain import Progress, no_progress

# A CPU device goes through its runs one by one: few at a time keep memory small and progress alive.
CPU_RUNS_PER_DEVICE = 4


@dataclass(frozen=True)
class Run:
    """One run of Bayesian optimization.

    Attributes:
      policy: what chooses the candidates.
      task: the test task; its trials are the candidates.
      seed: of the run's random numbers.
      initial: rows of the task that are observed before the policy chooses, as HPO-B prescribes them.
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
    """The results of simulated runs; every array has a row per run and a column per iteration.

    A run fails if its policy scores a candidate NaN. Its rows have no meaning then.

    Attributes:
      choices: the observed candidate, as a row of the run's task.
      mean: predictive mean of the observation, before it was made; NaN where the policy makes no prediction.
      deviation: predictive standard deviation, noise included; NaN likewise.
      failures: why each run failed; None where it did not.
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


# Called with the results of the next runs.
Finished = Callable[[Simulation], object]


@pytree
class _Problem:
    """The padded candidates of a run's task and its stream of random numbers; or those of all runs."""

    x: Float[Array, "*runs c d"]
    y: Float[Array, "*runs c"]
    mask: Bool[Array, "*runs c"]
    initial: Int[Array, "*runs i"]
    stream: UInt32[Array, "*runs 2"]


def _run(iterations: int, repeats: bool, policy: Policy, problem: _Problem) -> tuple[Array, ...]:
    """One run: chosen candidates, predicted means and deviations, and whether all scores were numbers."""
    task_key = run_key(problem.stream)
    count = problem.initial.shape[0]

    def observe(state: Any, step: Array, candidate: Array) -> Any:
        return policy.observe(state, step, candidate, problem.y[candidate])

    def observe_initial(state: Any, row: tuple[Array, Array]) -> tuple[Any, None]:
        return observe(state, *row), None

    def iterate(carry: tuple[Any, Array], step: Array) -> tuple[tuple[Any, Array], tuple[Array, ...]]:
        state, available = carry
        # A run that has observed every trial goes on with repeats: its regret is 0, and stays there.
        available = jnp.where(jnp.any(available), available, problem.mask)
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
    """The best available candidate; among equal ones a random one, so the order of trials has no effect."""
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
    repeats: bool = False,
    progress: Progress = no_progress,
    finished: Finished = lambda part: None,
) -> Simulation:
    """Run Bayesian optimization on the finite candidates of each run's task.

    A trial is observed once, as in Section 7.6 "Results on the HPO-B Benchmark", whose runs begin with given
    rows. With repeats and without initial rows this is the protocol of Section 7.4 "Results on the PD1
    Offline Hyperparameter Tuning Tasks". A run that has observed every trial of its task goes on with
    repeats.

    Args:
      runs: policies of one structure, each with its task and seed.
      iterations: observations per run beside the initial ones.
      repeats: whether a candidate may be observed again before all are observed.
      progress: called with runs done and in all.
      finished: called with the results of the next runs, in the order of the runs, as soon as they are known.

    Returns:
      The results of all runs. Some may have failed; `Simulation.require_usable` makes that an error. A run
      does not depend on the other runs, nor on the number of devices.

    Raises:
      InvalidInputError: there is no run or no iteration, or the runs differ in the structure of their
        policies or the number of initial rows.
    """
    _check(runs, iterations)
    devices = jax.device_count()
    size = len(runs) if jax.default_backend() != "cpu" else CPU_RUNS_PER_DEVICE * devices
    size = min(size, len(runs))
    longest = max(len(run.task.y) for run in runs)
    execute = _executor(iterations, repeats)
    parts = []
    for begin in range(0, len(runs), size):
        progress(begin, len(runs))
        part = list(runs[begin : begin + size])
        # The last part is filled up with copies of a run: another size would be compiled anew.
        filled = part + part[-1:] * (size - len(part))
        policies: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *(run.policy for run in filled))
        arrays = execute(*pad_batch((policies, _problems(filled, longest))))
        choices, mean, deviation, usable = (np.asarray(array)[: len(part)] for array in arrays)
        failures = tuple(map(_failure, part, usable))
        moments = mean.astype(np.float64), deviation.astype(np.float64)
        parts.append(Simulation(choices.astype(np.int64), *moments, failures))
        finished(parts[-1])
    progress(len(runs), len(runs))
    return Simulation.joined(parts)


@cache
def _executor(iterations: int, repeats: bool) -> Callable[..., Any]:
    """The compiled runs; cached, so that a later call with arrays of the same shapes compiles nothing."""
    return batched(partial(_run, iterations, repeats))


def _check(runs: Sequence[Run], iterations: int) -> None:
    if not runs:
        raise InvalidInputError("no run to simulate")
    if iterations < 1:
        raise InvalidInputError(f"iterations = {iterations} is not positive")
    if len({jax.tree.structure(run.policy) for run in runs}) > 1:
        raise InvalidInputError("the policies differ in structure", fix="simulate each method apart")
    if len({len(run.initial) for run in runs}) > 1:
        raise InvalidInputError("the runs differ in the number of their initial rows")


def _failure(run: Run, usable: Bool[np.ndarray, " iterations"]) -> str | None:
    if usable.all():
        return None
    return (
        f"{type(run.policy).__name__} scored a candidate NaN on task {run.task.name!r} with seed {run.seed}, "
        f"in iteration {int(np.argmin(usable)) + 1}"
    )


def _problems(runs: Sequence[Run], longest: int) -> _Problem:
    padded = pad_tasks([run.task for run in runs], longest)
    initial = np.array([run.initial for run in runs], np.int64).reshape(len(runs), -1)
    streams = np.stack([run_stream(run.task.name, run.seed) for run in runs])
    return _Problem(*map(jnp.asarray, (padded.x, padded.y, padded.mask, initial, streams)))


def run_records(method: str, runs: Sequence[Run], simulation: Simulation) -> pd.DataFrame:
    """The runs of a simulation as records, one row per observation: what `hyperbo.evaluation` reads.

    Args:
      method: name of the method.
      runs: the simulated runs.
      simulation: their results.

    Raises:
      NumericalError: a run failed.
    """
    simulation.require_usable()
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
                "y_min": run.task.y.min(),
                **_best_given(run),
                "mean": mean,
                "deviation": deviation,
            }
        )
        for run, row, mean, deviation in zip(
            runs, simulation.choices, simulation.mean, simulation.deviation, strict=True
        )
    ]
    return pd.concat(frames, ignore_index=True)


def _best_given(run: Run) -> dict[str, float]:
    if not run.initial:
        return {"y_initial": np.nan, "objective_initial": np.nan}
    best = max(run.initial, key=lambda row: run.task.y[row])
    return {"y_initial": run.task.y[best], "objective_initial": run.task.objective[best]}
