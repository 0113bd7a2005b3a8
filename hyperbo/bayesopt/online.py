"""Online Bayesian optimization: runs of methods over the whole search space, in lock-step and resumable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Float64

from hyperbo.bayesopt.history import History, run_stream
from hyperbo.bayesopt.journal import Journal, OnlineTrial, RunName
from hyperbo.bayesopt.propose import OnlineMethod, propose_for_runs
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import OutputWarping
from hyperbo.errors import InvalidInputError

_RUN = ["method", "task", "seed"]


class TrialResults(NamedTuple):
    """The results of some trials, one entry for each.

    Attributes:
      objective: raw objective values, NaN where a trial was infeasible.
      rows: the trials as raw records, plain values that JSON can hold.
    """

    objective: Float64[np.ndarray, " n"]
    rows: list[dict[str, Any]]


@runtime_checkable
class TunedTask(Protocol):
    """A task that is tuned: it takes hyperparameters and returns the results of trials."""

    @property
    def space(self) -> SearchSpace:
        """Its search space."""
        ...

    @property
    def warping(self) -> OutputWarping:
        """From its raw objective to the value that is maximised."""
        ...

    def run_trials(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> TrialResults:
        """Run one trial for each of several runs, all at once.

        The result of a trial must not depend on the other trials.

        Args:
          points: raw hyperparameters, one row for each run.
          runs: the runs that the trials belong to.
          iteration: 1, 2, ...
        """
        ...


@dataclass(frozen=True)
class OnlineRun:
    """One run: a method, what it has learned, and the name of the run.

    Attributes:
      name: method's label, task and seed.
      method: what proposes.
      fitted: what the method has learned.
    """

    name: RunName
    method: OnlineMethod
    fitted: Any


def tune(
    runs: Sequence[OnlineRun],
    tasks: Mapping[str, TunedTask],
    journal: Journal,
    trials: int,
    on_trials: Callable[[Sequence[OnlineTrial]], object] = lambda trials: None,
) -> dict[RunName, str]:
    """Continue runs until each has a given number of trials.

    In every iteration each method proposes for all of its runs at once, and each task trains all trials at
    once. The journal holds the trials of an iteration before the next one begins. So a run that was
    interrupted continues as if it had not been. On a CPU a run's trials do not depend on the other runs.

    Args:
      runs: with different names.
      tasks: by name.
      journal: holds the earlier trials, and takes the new ones.
      trials: number of trials of each run; those in the journal count.
      on_trials: called with the trials that are new in the journal.

    Returns:
      The runs whose method failed, and why. These runs end with the trials that they have.

    Raises:
      InvalidInputError: two runs have one name, or a task is missing.
    """
    if len({run.name for run in runs}) < len(runs):
        raise InvalidInputError("two runs have the same method, task and seed")
    missing = sorted({run.name.task for run in runs} - tasks.keys())
    if missing:
        raise InvalidInputError(f"no task {', '.join(missing)}", fix="give all tasks of the runs")
    courses = {run.name: _Course(run, tasks[run.name.task]) for run in runs}
    for trial in journal.trials:
        if trial.run in courses:
            courses[trial.run].add(trial)
    by_method: dict[str, list[_Course]] = {}
    for course in courses.values():
        by_method.setdefault(course.run.name.method, []).append(course)
    for count in range(trials):
        due: dict[str, list[tuple[_Course, Float64[np.ndarray, " d"]]]] = {}
        for of_method in by_method.values():
            for course, point in _proposed(of_method, count):
                due.setdefault(course.run.name.task, []).append((course, point))
        for task, tried in due.items():
            new = _tried(tasks[task], tried, count + 1)
            journal.append(new)
            for trial in new:
                courses[trial.run].add(trial)
            on_trials(new)
    return {name: course.failure for name, course in courses.items() if course.failure is not None}


class _Course:
    """A run and its trials so far."""

    def __init__(self, run: OnlineRun, task: TunedTask) -> None:
        self.run, self.task = run, task
        self.failure: str | None = None
        self._x: list[Float64[np.ndarray, " d"]] = []
        self._y: list[float] = []

    def __len__(self) -> int:
        return len(self._y)

    def add(self, trial: OnlineTrial) -> None:
        # From the raw values: a resumed run reads these, and must see the same bits.
        self._x.extend(self.task.space.to_unit(np.array([trial.point])))
        feasible = trial.objective is not None
        self._y.extend(self.task.warping.warp(np.array([trial.objective])) if feasible else [np.nan])

    def history(self, count: int) -> History:
        """Its first trials; fewer than `count` where it failed before."""
        x = np.array(self._x[:count]).reshape(-1, self.task.space.dimension)
        return History(x, np.array(self._y[:count], np.float64), x[:0])


def _proposed(courses: Sequence[_Course], count: int) -> list[tuple[_Course, Float64[np.ndarray, " d"]]]:
    """Raw points for the runs of a method that have exactly `count` trials and have not failed."""
    waiting = [len(course) == count and course.failure is None for course in courses]
    if not any(waiting):
        return []
    # All runs take part, also those that wait for nothing: another batch size would be compiled anew.
    points, scores = propose_for_runs(
        courses[0].run.method,
        [course.run.fitted for course in courses],
        [course.history(count) for course in courses],
        [run_stream(course.run.name.task, course.run.name.seed) for course in courses],
    )
    proposed = []
    for course, waits, x, score in zip(courses, waiting, points, scores, strict=True):
        if not waits:
            continue
        if np.isfinite(score) and np.isfinite(x).all():
            proposed.append((course, course.task.space.from_unit(x[None])[0]))
        else:
            course.failure = f"the acquisition function is {score} in iteration {count + 1}"
    return proposed


def _tried(
    task: TunedTask, tried: Sequence[tuple[_Course, Float64[np.ndarray, " d"]]], iteration: int
) -> list[OnlineTrial]:
    """One trial of each of some runs of a task."""
    names = [course.run.name for course, _ in tried]
    results = task.run_trials(np.stack([point for _, point in tried]), names, iteration)
    return [
        OnlineTrial(name, iteration, tuple(point.tolist()), float(value) if np.isfinite(value) else None, row)
        for name, (_, point), value, row in zip(names, tried, results.objective, results.rows, strict=True)
    ]


def online_records(trials: Sequence[OnlineTrial], warpings: Mapping[str, OutputWarping]) -> pd.DataFrame:
    """Trials as a table, ordered by method, task, seed and iteration.

    Args:
      trials: of any number of runs.
      warpings: of each task's objective.

    Returns:
      The columns `method`, `task`, `seed`, `iteration` (1, 2, ...), `y`, `objective` and `infeasible`. `y` is
      the warped objective. It is not mapped to [-2, 2], because that map changes with every iteration. `y`
      and `objective` are NaN where a trial was infeasible.
    """
    rows = [
        (*trial.run, trial.iteration, np.nan if trial.objective is None else trial.objective)
        for trial in trials
    ]
    frame = pd.DataFrame(rows, columns=[*_RUN, "iteration", "objective"])
    frame["infeasible"] = frame["objective"].isna()
    y = np.full(len(frame), np.nan)
    for task, warping in warpings.items():
        feasible = ((frame["task"] == task) & ~frame["infeasible"]).to_numpy()
        y[feasible] = warping.warp(frame["objective"].to_numpy(np.float64)[feasible])
    frame.insert(4, "y", y)
    return frame.sort_values([*_RUN, "iteration"], ignore_index=True)


def best_so_far(records: pd.DataFrame) -> pd.DataFrame:
    """The records with a column `best`: the best objective of the run so far.

    It is the objective of the largest y so far, and NaN as long as all trials were infeasible.
    """
    ordered = records.sort_values([*_RUN, "iteration"], ignore_index=True)
    best = []
    for _, run in ordered.groupby(_RUN, sort=False):
        y = run["y"].fillna(-np.inf).to_numpy()
        # The row of the largest y so far, of equal ones the first: where a larger one is reached, that row.
        reached = np.maximum.accumulate(y)
        larger = reached > np.concatenate([[-np.inf], reached[:-1]])
        rows = np.maximum.accumulate(np.where(larger, np.arange(len(y)), 0))
        best.append(np.where(np.isneginf(reached), np.nan, run["objective"].to_numpy()[rows]))
    return ordered.assign(best=np.concatenate(best) if best else [])
