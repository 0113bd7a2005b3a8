"""Online Bayesian optimization: runs of methods over the whole search space, in lock-step and resumable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.online.journal import Journal, OnlineTrial, RunName
from hyperbo.online.propose import History, propose
from hyperbo.online.protocol import OnlineMethod
from hyperbo.search_space import SearchSpace
from hyperbo.warping import OutputWarping


class Evaluation(NamedTuple):
    """What came of trials, an entry for each.

    Attributes:
      objective: raw objective, NaN where the trial was infeasible.
      rows: the trials as records of their own, of plain values that JSON can hold.
    """

    objective: Float64[np.ndarray, " n"]
    rows: list[dict[str, Any]]


@runtime_checkable
class Objective(Protocol):
    """What is tuned: one task, tried for real."""

    @property
    def space(self) -> SearchSpace:
        """Its search space."""
        ...

    @property
    def warping(self) -> OutputWarping:
        """From its raw objective to the value that is maximised."""
        ...

    def evaluate(
        self, points: Float64[np.ndarray, "n d"], runs: Sequence[RunName], iteration: int
    ) -> Evaluation:
        """Try points, one for each of several runs, all at once.

        The result of a trial must not depend on the others.

        Args:
          points: raw hyperparameters.
          runs: whose trials they are.
          iteration: 1, 2, ...
        """
        ...


@dataclass(frozen=True)
class OnlineRun:
    """One run: a method, what it has learned, and where it is to be used.

    Attributes:
      name: method's label, task and seed.
      method: what chooses.
      fitted: what it has learned.
    """

    name: RunName
    method: OnlineMethod
    fitted: Any


def _nobody(trials: Sequence[OnlineTrial]) -> None:
    """Tell nobody."""


def tune(
    runs: Sequence[OnlineRun],
    objectives: Mapping[str, Objective],
    journal: Journal,
    trials: int,
    on_trials: Callable[[Sequence[OnlineTrial]], object] = _nobody,
) -> dict[RunName, str]:
    """Go on with runs until each has so many trials.

    In every iteration each method proposes for all of its runs at once, and each task tries all points at
    once. What is tried is in the journal before the next iteration, so that a run that was broken off goes
    on as if it had not been. On a CPU a run's trials do not depend on which others take part.

    Args:
      runs: with names of their own.
      objectives: by task.
      journal: what was tried before, and where trials are written.
      trials: of each run, those in the journal counted.
      on_trials: called with the trials that are new in the journal.

    Returns:
      The runs whose method failed, and why: they end with the trials that they have.

    Raises:
      InvalidInputError: names repeat, or a task has no objective.
    """
    _check(runs, objectives)
    courses = {run.name: _Course(run, objectives[run.name.task]) for run in runs}
    for trial in journal.trials:
        if trial.run in courses:
            courses[trial.run].add(trial)
    methods: dict[str, list[_Course]] = {}
    for course in courses.values():
        methods.setdefault(course.run.name.method, []).append(course)
    for count in range(trials):
        due: dict[str, list[tuple[_Course, Float64[np.ndarray, " d"]]]] = {}
        for of_method in methods.values():
            for course, point in _proposed(of_method, count):
                due.setdefault(course.run.name.task, []).append((course, point))
        for task, tried in due.items():
            new = _tried(objectives[task], tried, count + 1)
            journal.append(new)
            for trial in new:
                courses[trial.run].add(trial)
            on_trials(new)
    return {name: course.failure for name, course in courses.items() if course.failure is not None}


class _Course:
    """How far a run is."""

    def __init__(self, run: OnlineRun, objective: Objective) -> None:
        self.run, self.objective = run, objective
        self.failure: str | None = None
        self._x: list[Float64[np.ndarray, " d"]] = []
        self._y: list[float] = []

    def __len__(self) -> int:
        return len(self._y)

    def add(self, trial: OnlineTrial) -> None:
        # From the raw values, as a run that is taken up again reads them: both see the same bits.
        self._x.extend(self.objective.space.to_unit(np.array([trial.point])))
        feasible = trial.objective is not None
        self._y.extend(self.objective.warping.warp(np.array([trial.objective])) if feasible else [np.nan])

    def history(self, count: int) -> History:
        """Its first observations; fewer where it failed before."""
        x = np.array(self._x[:count]).reshape(-1, self.objective.space.dimension)
        return History(self.run.name.task, self.run.name.seed, x, np.array(self._y[:count], np.float64))


def _proposed(courses: Sequence[_Course], count: int) -> list[tuple[_Course, Float64[np.ndarray, " d"]]]:
    """What a method's runs try next, of those that have observed so much and not failed."""
    waiting = [len(course) == count and course.failure is None for course in courses]
    if not any(waiting):
        return []
    # All take part, also those that wait for nothing: a batch of another size would be compiled anew.
    histories = [course.history(count) for course in courses]
    proposals = propose(courses[0].run.method, [course.run.fitted for course in courses], histories)
    points = []
    for course, waits, x, score in zip(courses, waiting, proposals.x, proposals.score, strict=True):
        if not waits:
            continue
        if np.isfinite(score) and np.isfinite(x).all():
            points.append((course, course.objective.space.from_unit(x[None])[0]))
        else:
            course.failure = f"the acquisition function is {score} in iteration {count + 1}"
    return points


def _tried(
    objective: Objective, tried: Sequence[tuple[_Course, Float64[np.ndarray, " d"]]], iteration: int
) -> list[OnlineTrial]:
    """One trial of each of some runs of a task."""
    names = [course.run.name for course, _ in tried]
    evaluation = objective.evaluate(np.stack([point for _, point in tried]), names, iteration)
    return [
        OnlineTrial(name, iteration, tuple(point.tolist()), float(value) if np.isfinite(value) else None, row)
        for name, (_, point), value, row in zip(
            names, tried, evaluation.objective, evaluation.rows, strict=True
        )
    ]


def _check(runs: Sequence[OnlineRun], objectives: Mapping[str, Objective]) -> None:
    if len({run.name for run in runs}) < len(runs):
        raise InvalidInputError("two runs have the same method, task and seed")
    missing = sorted({run.name.task for run in runs} - objectives.keys())
    if missing:
        raise InvalidInputError(f"no objective for {', '.join(missing)}", fix="give one for each task")
