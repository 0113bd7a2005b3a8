"""Optuna's samplers on recorded trials: what they try, if only what a task has tried can be tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
from jaxtyping import Int64
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.trial import TrialState, create_trial

from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import Task
from hyperbo.data.warping import OutputWarping
from hyperbo.tuning.optuna.distributions import space_of


def sampler_rows(
    space: SearchSpace, task: Task, warping: OutputWarping, trials: int, sampler: BaseSampler
) -> Int64[np.ndarray, " t"]:
    """The recorded trials that a sampler of Optuna, such as TPE, tries, in their order, none twice.

    What it asks for is tried at the nearest trial in the unit cube that is left, and it is told that trial's
    own point and objective. An infeasible trial is told with the task's worst objective, as users without a
    mark for infeasible trials do. Optuna has no scale for a momentum near 1: such a parameter is searched by
    its coordinate.

    Args:
      space: the search space.
      task: its objective is NaN where a trial is infeasible; at least one is not.
      warping: of its objective; it says the direction.
      trials: how many; fewer where the task has fewer.
      sampler: of a new study.
    """
    numbers = [each for each in space.parameters if isinstance(each, Parameter)]
    by_coordinate = {each.name: each for each in numbers if each.scaling == "log1m"}
    distributions = space_of(space, {}) | dict.fromkeys(by_coordinate, FloatDistribution(0.0, 1.0))
    objective = task.objective
    worst = np.nanmax(objective) if warping.direction == "minimize" else np.nanmin(objective)
    told = np.where(np.isfinite(objective), objective, worst)
    points = space.values(space.from_unit(task.x))
    left = np.ones(len(task.y), bool)
    rows: list[int] = []
    with _quiet():
        study = optuna.create_study(direction=warping.direction, sampler=sampler)
        for _ in range(min(trials, len(task.y))):
            x = space.to_unit(space.codes([_asked(study, space, distributions, by_coordinate)]))[0]
            apart = np.sum((task.x - x) ** 2, axis=1)
            row = int(np.argmin(np.where(left, apart, np.inf)))
            left[row] = False
            rows.append(row)
            values: dict[str, Any] = dict(points[row])
            for name in by_coordinate.keys() & values.keys():
                values[name] = float(
                    np.clip(by_coordinate[name].to_unit(np.array([values[name]]))[0], 0.0, 1.0)
                )
            active = {name: distributions[name] for name in values}
            study.add_trial(create_trial(value=float(told[row]), params=values, distributions=active))
    return np.array(rows, np.int64)


def _asked(
    study: optuna.Study,
    space: SearchSpace,
    distributions: Mapping[str, BaseDistribution],
    by_coordinate: Mapping[str, Parameter],
) -> dict[str, Any]:
    """What the sampler asks for: values of the active parameters."""
    trial, values = study.ask(), {}
    for name in (space.names[place] for place in space.parents_first):
        if space.is_active(name, values):
            asked = trial._suggest(name, distributions[name])
            if name in by_coordinate:
                asked = float(by_coordinate[name].from_unit(np.array([asked]))[0])
            values[name] = asked
    # A failed trial is left out by the sampler; what it is told is added as another one.
    study.tell(trial, state=TrialState.FAIL)
    return values


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's line for each study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
