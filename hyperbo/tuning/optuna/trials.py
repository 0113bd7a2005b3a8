"""The trials of an Optuna study as trials of a tuner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import OutputWarping
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.optuna.codes import active_names
from hyperbo.tuning.optuna.study_history import FAILED, TOLD
from hyperbo.tuning.trial import Status, TuningTrial, finite_objective, number_of, warped


def seen(trial: FrozenTrial) -> TuningTrial:
    """A trial as a tuner shows it; one that was pruned, or that a killed process left, is failed."""
    status: Status = "running"
    if trial.state == TrialState.COMPLETE:
        status = "done"
    elif trial.state.is_finished():
        is_told = trial.system_attrs.get(TOLD, False) and not trial.user_attrs.get(FAILED, False)
        status = "infeasible" if is_told else "failed"
    objective = trial.value if status == "done" else None
    return TuningTrial(trial.number, dict(trial.params), status, objective)


def is_whole(trial: FrozenTrial, prior: SearchSpace, space: Mapping[str, Any]) -> bool:
    """Whether all hyperparameters of a trial are chosen; another process may be choosing them."""
    return trial.params.keys() >= active_names(prior, space, trial.params)


def running_trial(study: Study, given: Any, prior: SearchSpace, space: Mapping[str, Any]) -> FrozenTrial:
    """The running trial of a number, or of what `ask` returned.

    Raises:
      InvalidInputError: there is no such trial, its result was told before, it has no hyperparameters, or
        others than those given.
    """
    number = number_of(given)
    known = {each.number: each for each in study.get_trials(deepcopy=False)}
    if number not in known:
        raise InvalidInputError(
            f"there is no trial {number}",
            where=f"run {study.study_name!r}",
            fix=f"its trials are 0 to {len(known) - 1}" if known else "ask for one first",
        )
    found = known[number]
    if found.state.is_finished():
        before = seen(found)
        was = before.status if before.objective is None else f"{before.objective}"
        raise InvalidInputError("the result was told before", where=f"trial {number}", fix=f"it stays {was}")
    if found.state == TrialState.WAITING or not is_whole(found, prior, space):
        raise InvalidInputError(
            "it has no hyperparameters: its `ask` did not end", where=f"trial {number}", fix="ask again"
        )
    if isinstance(given, TuningTrial) and found.params != given.hyperparameters:
        raise InvalidInputError(
            "the trial of this number has other hyperparameters",
            where=f"trial {number}",
            fix="tell the result to the tuner that proposed the trial",
        )
    return found


def told_value(
    warping: OutputWarping, objective: Any, infeasible: bool, failed: bool, where: str
) -> float | None:
    """The objective that is told of a trial; None where it has none.

    Raises:
      InvalidInputError: not one of the three is told, or the objective cannot be used.
    """
    if (objective is not None) + infeasible + failed != 1:
        raise InvalidInputError(
            f"objective = {objective}, infeasible = {infeasible}, failed = {failed}",
            where=where,
            fix="tell one of the three",
        )
    if objective is None:
        return None
    value = finite_objective(objective, where)
    warped(warping, value, where)
    return value


def parents_first(prior: SearchSpace, space: Iterable[str]) -> list[str]:
    """The names of a space to tune in an order in which they can be chosen: a parent before its children."""
    of_prior = [prior.names[place] for place in prior.parents_first]
    return [*of_prior, *(name for name in space if name not in prior.names)]
