"""Optuna's TPE on recorded trials: what it would try next, if only what a task has tried could be tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import optuna
from jaxtyping import Int64
from optuna.trial import TrialState, create_trial

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.tuning_data import Task
from hyperbo.data.warping import OutputWarping
from hyperbo.tuning.optuna.distributions import space_of


def tpe_rows(
    space: SearchSpace, task: Task, warping: OutputWarping, trials: int, seed: int
) -> Int64[np.ndarray, " t"]:
    """The recorded trials that TPE at Optuna's defaults tries, in their order, none twice.

    What it asks for is tried at the nearest trial in the unit cube that is left, and it is told that trial's
    own point and objective. An infeasible trial is told with the task's worst objective, as users without a
    mark for infeasible trials do.

    Args:
      space: the search space.
      task: its objective is NaN where a trial is infeasible; at least one is not.
      warping: of its objective; it says the direction.
      trials: how many; fewer where the task has fewer.
      seed: of the sampler.
    """
    distributions = space_of(space, {})
    objective = task.objective
    worst = np.nanmax(objective) if warping.direction == "minimize" else np.nanmin(objective)
    told = np.where(np.isfinite(objective), objective, worst)
    left = np.ones(len(task.y), bool)
    rows: list[int] = []
    with _quiet():
        study = optuna.create_study(
            direction=warping.direction, sampler=optuna.samplers.TPESampler(seed=seed)
        )
        for _ in range(min(trials, len(task.y))):
            asked = study.ask(distributions)
            x = space.to_unit(space.codes([asked.params]))[0]
            apart = np.sum((task.x - x) ** 2, axis=1)
            row = int(np.argmin(np.where(left, apart, np.inf)))
            left[row] = False
            rows.append(row)
            # A failed trial is left out by the sampler.
            study.tell(asked, state=TrialState.FAIL)
            # What is inactive is missing.
            (values,) = space.values(space.from_unit(task.x[row : row + 1]))
            active = {name: distributions[name] for name in values}
            study.add_trial(create_trial(value=float(told[row]), params=values, distributions=active))
    return np.array(rows, np.int64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's line for each study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
