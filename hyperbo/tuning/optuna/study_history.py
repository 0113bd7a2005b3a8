"""The trials of an Optuna study as the history that a prior is conditioned on."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hyperbo.bayesopt.history import History
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import OutputWarping
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.optuna.codes import codes_of
from hyperbo.tuning.region import coordinates
from hyperbo.tuning.trial import warped

logger = logging.getLogger(__name__)

# System attribute: the values that a trial will have, written before they are suggested one by one.
PROPOSED = "hyperbo:proposed"
# System attribute of a failed trial whose result was told; a trial that a killed process left has none.
TOLD = "hyperbo:told"
# User attribute of a failed trial whose hyperparameters are not the cause.
FAILED = "hyperbo:failed"
# User attribute: why a trial has no result, for a reader.
REASON = "hyperbo:reason"
# How long a trial waits for the values of earlier trials; after that time their processes count as killed.
_PATIENCE, _POLL = timedelta(seconds=10), 0.02


def history_of(
    study: Study,
    trial: FrozenTrial,
    space: SearchSpace,
    warping: OutputWarping,
    missing: Mapping[str, float],
    is_whole: Callable[[Mapping[str, Any]], bool] | None,
) -> History:
    """What a prior is conditioned on before it proposes a trial, which is left out.

    Complete and pruned trials count with their value; that of a pruned trial is its last intermediate value.
    Failed trials that were told, and values that are not finite, are infeasible. Trials of killed processes
    are left out. A trial at which the scaling is not defined is left out with a warning. `missing` stands in
    for parameters of the prior that a trial lacks, by their codes. `is_whole` tells whether a trial has all
    values that it will have; None: that is not known.

    Raises:
      InvalidInputError: the warping is not defined at an objective value. The message names the trial.
    """
    told: list[tuple[FrozenTrial, list[float]]] = []
    pending: list[tuple[FrozenTrial, list[float]]] = []
    for each in study.get_trials(deepcopy=False):
        runs = each.state == TrialState.RUNNING
        proposed = each.system_attrs.get(PROPOSED, {}) if runs else {}
        values = codes_of(space, {**proposed, **each.params})
        if each.number == trial.number or not values or not _counts(each, is_whole):
            continue
        all_values = {**missing, **values}
        (pending if runs else told).append((each, [all_values[name] for name in space.names]))
    placed = list(_placed(told, space))
    x, running = (
        np.array([point for _, point in rows]).reshape(-1, space.dimension)
        for rows in (placed, list(_placed(pending, space)))
    )
    return History(x, np.array([_warped(each, warping) for each, _ in placed], np.float64), running)


def wait_for_others(study: Study, trial: FrozenTrial) -> None:
    """Wait until earlier trials have their values; else several processes would try the same."""
    end = time.monotonic() + _PATIENCE.total_seconds()
    while time.monotonic() < end:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        before = (each for each in running if each.number < trial.number)
        if not any(PROPOSED not in each.system_attrs and _is_recent(each) for each in before):
            return
        time.sleep(_POLL)


def _counts(trial: FrozenTrial, is_whole: Callable[[Mapping[str, Any]], bool] | None) -> bool:
    if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
        return True
    if trial.state == TrialState.FAIL:
        return bool(trial.system_attrs.get(TOLD, False)) and not trial.user_attrs.get(FAILED, False)
    # A process that was killed while it chose the values leaves a trial that lacks some.
    has_all = is_whole is None or is_whole(trial.params)
    return trial.state == TrialState.RUNNING and (has_all or _is_recent(trial))


def _is_recent(trial: FrozenTrial) -> bool:
    if trial.datetime_start is None:
        return False
    # A clock that is ahead says nothing of how long ago it was.
    return timedelta(seconds=-1) <= datetime.now() - trial.datetime_start < _PATIENCE


def _placed(
    trials: Sequence[tuple[FrozenTrial, list[float]]], space: SearchSpace
) -> Iterator[tuple[FrozenTrial, np.ndarray]]:
    """Trials with their coordinates; a trial that has none is left out with a warning."""
    if not trials:
        return
    try:
        points = coordinates(space, np.array([raw for _, raw in trials]))
    except InvalidInputError:
        for each, raw in trials:
            try:
                yield each, coordinates(space, np.array([raw]))[0]
            except InvalidInputError as error:
                logger.warning("trial %d is left out: %s", each.number, error)
    else:
        yield from zip((each for each, _ in trials), points, strict=True)


def _warped(trial: FrozenTrial, warping: OutputWarping) -> float:
    """The warped value of a trial; NaN where it is infeasible."""
    if trial.state == TrialState.FAIL or trial.value is None or not math.isfinite(trial.value):
        return math.nan
    return warped(warping, trial.value, where=f"trial {trial.number}")
