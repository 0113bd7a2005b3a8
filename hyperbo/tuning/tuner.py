"""Ask and tell: tuning a model with a pre-trained prior, the trials in a database (extra `optuna`)."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

from optuna.distributions import distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.priors.file import Prior
from hyperbo.tuning.optuna.codes import active_names
from hyperbo.tuning.optuna.database import database_errors, opened_study
from hyperbo.tuning.optuna.distributions import inside
from hyperbo.tuning.optuna.sampler import HyperBOSampler
from hyperbo.tuning.optuna.study_history import FAILED, TOLD, warped
from hyperbo.tuning.optuna.whole_space import begun, say_unknown
from hyperbo.tuning.proposals import PRIOR_WEIGHT

Status = Literal["running", "done", "infeasible", "failed"]


@dataclass(frozen=True)
class TuningTrial:
    """One trial of a tuner.

    Attributes:
      number: 0, 1, ... in the order of the calls of `ask`.
      hyperparameters: what to try; without those that are inactive.
      status: `running`, `done`, `infeasible` or `failed`.
      objective: the objective value that was told, not warped; None where there is none.
    """

    number: int
    hyperparameters: Mapping[str, Any]
    status: Status
    objective: float | None


class Tuner:
    """Proposes hyperparameters with a prior, and learns from their results, which may come in any order.

    When a method returns, everything is in the storage. Any number of tuners, in any number of processes, may
    share one storage and name. A tuner that is killed loses nothing.

    Args:
      prior: what `hyperbo.load_prior` returns; or `universal`, for any space, which is then given whole.
      space: what to tune, by name of the parameter: a range (lower, upper), also wider than the prior's; a
        list of choices; a value, which is held fixed; or a distribution of Optuna, such as
        `IntDistribution(8, 512, log=True)`. Parameters of the prior that are not named have the prior's
        range or levels. The universal prior extends the prior to parameters that it does not know. With
        `universal` two whole numbers are the range of an integer, and a range above 0 whose ends differ by a
        factor of 100 is searched in its logarithm; a `SearchSpace` says all of it.
      storage: address of a database, such as `sqlite:///runs.db`, or a storage of Optuna; None: memory.
      name: of the run in the storage.
      batch: how running trials change the next one: `kriging_believer`, `constant_liar`,
        `local_penalization` or `thompson_sampling`.
      seed: of all random numbers.
      prior_weight: of the prior in a mixture with uninformed Gaussian processes, before any trial; above 0.
        The trials change the weights: a prior that is wrong loses its say. 1: the prior alone, by GP-UCB. The
        universal prior has no weight.
      direction: `minimize` or `maximize`: the objective, of `universal` only; other priors have theirs.

    Raises:
      InvalidInputError: a range, choice or name in `space` cannot be used, there is no such strategy, the
        weight is none, or the database cannot be used.
      VersionConflictError: the run in the storage was begun with another prior or space.

    >>> import hyperbo
    >>> prior = hyperbo.load_prior("pd1-mini/h-ekl")
    >>> tuner = Tuner(prior, space={"learning_rate": (1e-4, 1.0), "power": 1.0})
    >>> trial = tuner.ask()
    >>> sorted(trial.hyperparameters)
    ['decay_steps_factor', 'learning_rate', 'momentum', 'power']
    >>> tuner.tell(trial, 0.23).status
    'done'
    >>> tuner.best.objective
    0.23
    """

    def __init__(
        self,
        prior: Prior | str,
        space: Mapping[str, Any] | SearchSpace | None = None,
        storage: str | BaseStorage | None = None,
        name: str = "tuning",
        batch: str = "kriging_believer",
        seed: int = 0,
        prior_weight: float = PRIOR_WEIGHT,
        direction: str | None = None,
    ) -> None:
        self.prior = prior
        belief, self.space = begun(prior, space, direction)
        sampler = HyperBOSampler(
            belief, batch=batch, seed=seed, search_space=self.space, prior_weight=prior_weight
        )
        self.belief = belief = sampler.belief
        self._warping = belief.warping
        say_unknown(belief, self.space)
        identity = {
            "prior": belief.identity,
            "space": {key: json.loads(distribution_to_json(each)) for key, each in self.space.items()},
        }
        if belief.extended_by:
            identity["extended_by"] = belief.extended_by
        self.study: Study = opened_study(name, storage, sampler, self._warping.direction, identity)

    def ask(self) -> TuningTrial:
        """Propose what to try next. The trial is running until its result is told.

        Raises:
          InvalidInputError: the database cannot be used.
          NumericalError: the acquisition function is nowhere finite.
        """
        with database_errors(self.study):
            trial = self.study.ask()
            try:
                for name in self._parents_first:
                    if name in self._active(trial.params):
                        trial._suggest(name, self.space[name])
            except BaseException:
                # A trial without hyperparameters must not wait for its result for ever.
                trial.set_user_attr(FAILED, True)
                self.study.tell(trial, state=TrialState.FAIL)
                raise
            return self._seen(self.study._storage.get_trial(trial._trial_id))

    def tell(
        self,
        trial: TuningTrial | Any,
        objective: Any = None,
        *,
        infeasible: bool = False,
        failed: bool = False,
    ) -> TuningTrial:
        """Tell the result of a trial: its objective, that it is infeasible, or that it failed.

        Args:
          trial: what `ask` returned, or its number.
          objective: a finite number with the unit and direction of the prior's objective, such as an error
            rate.
          infeasible: the hyperparameters have no result, as when training diverges. Similar ones will be
            avoided.
          failed: something else went wrong. Nothing is learned from the trial.

        Returns:
          The trial with its result.

        Raises:
          InvalidInputError: there is no such trial, its result was told before, or the objective cannot be
            used. An earlier result stays.
        """
        number = trial.number if isinstance(trial, TuningTrial) else _number(trial)
        value = self._checked(objective, infeasible, failed, where=f"trial {number}")
        with database_errors(self.study):
            found = self._running(number)
            if isinstance(trial, TuningTrial) and self._seen(found).hyperparameters != trial.hyperparameters:
                raise InvalidInputError(
                    "the trial of this number has other hyperparameters",
                    where=f"trial {number}",
                    fix="tell the result to the tuner that proposed the trial",
                )
            state = TrialState.COMPLETE if value is not None else TrialState.FAIL
            try:
                if failed:
                    self.study._storage.set_trial_user_attr(found._trial_id, FAILED, True)
                self.study.tell(number, value, state=state)
            except (ValueError, UpdateFinishedTrialError):
                # Another process has told it since.
                self._running(number)
                raise
            return self._seen(self.study._storage.get_trial(found._trial_id))

    def add(
        self,
        hyperparameters: Mapping[str, Any],
        objective: Any = None,
        *,
        infeasible: bool = False,
    ) -> TuningTrial:
        """Add a trial that was run earlier or elsewhere.

        Args:
          hyperparameters: a value for each parameter of the space; one a rounding outside of its range
            counts as the bound.
          objective: as in `tell`.
          infeasible: as in `tell`.

        Raises:
          InvalidInputError: a parameter is missing, unknown or outside of its range, the objective cannot be
            used, or the database cannot be used.
        """
        value = self._checked(objective, infeasible, False, where="trial to be added")
        values = inside(self.space, hyperparameters, self.belief.space)
        state = TrialState.COMPLETE if value is not None else TrialState.FAIL
        template = create_trial(
            state=state,
            value=value,
            params=values,
            distributions={key: self.space[key] for key in values},
            system_attrs={TOLD: True} if infeasible else {},
        )
        with database_errors(self.study):
            # As `Study.add_trial` does, which does not say which trial it made.
            storage = self.study._storage
            return self._seen(storage.get_trial(storage.create_new_trial(self.study._study_id, template)))

    @property
    def trials(self) -> list[TuningTrial]:
        """All trials, in the order of their numbers."""
        with database_errors(self.study):
            return [
                self._seen(each) for each in self.study.get_trials(deepcopy=False) if self._is_whole(each)
            ]

    @property
    def best(self) -> TuningTrial | None:
        """The trial with the best objective; None while there is none."""
        done = [each for each in self.trials if each.status == "done"]
        sign = 1.0 if self._warping.direction == "minimize" else -1.0
        return min(done, key=lambda each: sign * (each.objective or 0.0), default=None)

    def _checked(self, objective: Any, infeasible: bool, failed: bool, where: str) -> float | None:
        if (objective is not None) + infeasible + failed != 1:
            raise InvalidInputError(
                f"objective = {objective}, infeasible = {infeasible}, failed = {failed}",
                where=where,
                fix="tell one of the three",
            )
        if objective is None:
            return None
        value = _finite(objective, where)
        warped(self._warping, value, where=where)
        return value

    def _running(self, number: int) -> FrozenTrial:
        known = {each.number: each for each in self.study.get_trials(deepcopy=False)}
        if number not in known:
            raise InvalidInputError(
                f"there is no trial {number}",
                where=f"run {self.study.study_name!r}",
                fix=f"its trials are 0 to {len(known) - 1}" if known else "ask for one first",
            )
        found = known[number]
        if found.state.is_finished():
            seen = self._seen(found)
            was = seen.status if seen.objective is None else f"{seen.objective}"
            raise InvalidInputError(
                "the result was told before", where=f"trial {number}", fix=f"it stays {was}"
            )
        if found.state == TrialState.WAITING or not self._is_whole(found):
            raise InvalidInputError(
                "it has no hyperparameters: its `ask` did not end", where=f"trial {number}", fix="ask again"
            )
        return found

    def _is_whole(self, trial: FrozenTrial) -> bool:
        """Whether all its hyperparameters are chosen; another process may be choosing them."""
        return trial.params.keys() >= self._active(trial.params)

    def _active(self, values: Mapping[str, Any]) -> set[str]:
        """The parameters that are active, given values; a condition of the prior holds in every space."""
        return active_names(self.belief.space, self.space, values)

    @property
    def _parents_first(self) -> list[str]:
        known = self.belief.space
        of_prior = [known.names[place] for place in known.parents_first]
        return [*of_prior, *(name for name in self.space if name not in known.names)]

    def _seen(self, trial: FrozenTrial) -> TuningTrial:
        status: Status = "running"
        if trial.state == TrialState.COMPLETE:
            status = "done"
        elif trial.state.is_finished():
            is_told = trial.system_attrs.get(TOLD, False) and not trial.user_attrs.get(FAILED, False)
            status = "infeasible" if is_told else "failed"
        objective = trial.value if status == "done" else None
        return TuningTrial(trial.number, dict(trial.params), status, objective)


def _number(given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError as error:
        raise InvalidInputError(
            f"{given!r} is no trial", fix="give what `ask` returned, or the trial's number"
        ) from error


def _finite(objective: Any, where: str) -> float:
    is_number = isinstance(objective, SupportsFloat) and not isinstance(objective, bool)
    try:
        value = float(objective) if is_number else None
    except (TypeError, ValueError, OverflowError):
        value = None
    if value is None:
        raise InvalidInputError(f"objective {objective!r} is no number", where=where)
    if not math.isfinite(value):
        raise InvalidInputError(f"objective {value}", where=where, fix="tell it infeasible=True")
    return value
