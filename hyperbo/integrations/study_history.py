"""The trials of an Optuna study as a prior sees them: where they lie, what came of them, which still run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hyperbo.errors import InvalidInputError
from hyperbo.integrations.distributions import as_number
from hyperbo.search_space import SearchSpace
from hyperbo.tuning import History, coordinates
from hyperbo.warping import OutputWarping

logger = logging.getLogger(__name__)

# System attribute: what a trial is going to try, written before its parameters are suggested one by one.
PROPOSED = "hyperbo:proposed"
# System attribute of a failed trial that somebody told: not of one that a killed process left.
TOLD = "hyperbo:told"
# User attribute of a failed trial of which the hyperparameters are not the cause.
FAILED = "hyperbo:failed"
# So long a trial waits for those before it to say what they try; one that is older was killed.
_PATIENCE, _POLL = timedelta(seconds=10), 0.02


def history_of(
    study: Study,
    trial: FrozenTrial,
    space: SearchSpace,
    warping: OutputWarping,
    missing: Mapping[str, float],
    whole: frozenset[str] | None,
) -> History:
    """What a prior is conditioned on before a trial is chosen.

    Complete and pruned trials count with their value, a pruned one's being its last intermediate one. Failed
    ones that were told, and values that are not finite, are infeasible. Those whose process was killed are
    left out, and so is, with a warning, a trial that has no place under the scaling.

    Args:
      study: its trials.
      trial: the one to be chosen, which takes no part.
      space: of the prior.
      warping: of the prior's outputs.
      missing: values of the prior's parameters that a trial lacks.
      whole: names that every trial has once it was asked for; None: that is not known.

    Raises:
      InvalidInputError: an objective has no place under the warping; names the trial.
    """
    told: list[tuple[FrozenTrial, list[float]]] = []
    pending: list[tuple[FrozenTrial, list[float]]] = []
    for each in study.get_trials(deepcopy=False):
        runs = each.state == TrialState.RUNNING
        proposed = each.system_attrs.get(PROPOSED, {}) if runs else {}
        values = numbers({**proposed, **each.params}, space.names)
        if each.number == trial.number or not values or not _counts(each, whole):
            continue
        all_values = {**missing, **values}
        (pending if runs else told).append((each, [all_values[name] for name in space.names]))
    placed = list(_placed(told, space))
    x, running = (
        np.array([point for _, point in rows]).reshape(-1, space.dimension)
        for rows in (placed, list(_placed(pending, space)))
    )
    return History(x, np.array([_warped(each, warping) for each, _ in placed], np.float64), running)


def warped(warping: OutputWarping, value: float, where: str = "") -> float:
    """A raw objective as the value that is maximised.

    Raises:
      InvalidInputError: the warping has no value there.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = float(warping.warp(np.array([value], np.float64))[0])
    if not math.isfinite(y):
        loss = "tell an error rate or a loss, which is not negative"
        raise InvalidInputError(
            f"objective {value} has no place under the prior's output warping {warping.name}",
            where=where,
            fix=loss if warping.name == "negative_log" else "tell a finite number",
        )
    return y


def numbers(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Those of the names that have a number."""
    return {name: number for name in names if (number := as_number(values.get(name))) is not None}


def wait_for_others(study: Study, trial: FrozenTrial) -> None:
    """Let trials that were begun a moment before say what they try: else all processes try the same."""
    end = time.monotonic() + _PATIENCE.total_seconds()
    while time.monotonic() < end:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        before = (each for each in running if each.number < trial.number)
        if not any(PROPOSED not in each.system_attrs and _is_recent(each) for each in before):
            return
        time.sleep(_POLL)


def _counts(trial: FrozenTrial, whole: frozenset[str] | None) -> bool:
    if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
        return True
    if trial.state == TrialState.FAIL:
        return bool(trial.system_attrs.get(TOLD, False)) and not trial.user_attrs.get(FAILED, False)
    # A process that was killed while it asked leaves a trial that is not whole, and stays so.
    is_whole = whole is None or trial.params.keys() >= whole
    return trial.state == TrialState.RUNNING and (is_whole or _is_recent(trial))


def _is_recent(trial: FrozenTrial) -> bool:
    if trial.datetime_start is None:
        return False
    # A clock that is ahead says nothing of how long ago it was.
    return timedelta(seconds=-1) <= datetime.now() - trial.datetime_start < _PATIENCE


def _placed(
    trials: Sequence[tuple[FrozenTrial, list[float]]], space: SearchSpace
) -> Iterator[tuple[FrozenTrial, np.ndarray]]:
    """Trials with their coordinates; those that have none are named and left out."""
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
    """The value that is maximised; NaN where the trial is infeasible."""
    if trial.state == TrialState.FAIL or trial.value is None or not math.isfinite(trial.value):
        return math.nan
    return warped(warping, trial.value, where=f"trial {trial.number}")
