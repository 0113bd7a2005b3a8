"""Ask and tell: tuning a model with a pre-trained prior, its trials in a database (extra `optuna`)."""

from __future__ import annotations

import json
import logging
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.prior import Prior
from hyperbo.warping import output_warping

try:
    from optuna.distributions import distribution_to_json
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ImportError as error:
    raise NotAvailableError("tuning needs Optuna: pip install 'hyperbo[optuna]'") from error

from hyperbo.integrations.database import database_errors, opened_study
from hyperbo.integrations.distributions import placed
from hyperbo.integrations.given_space import inside, space_of
from hyperbo.integrations.optuna import HyperBOSampler
from hyperbo.integrations.study_history import FAILED, TOLD, warped

logger = logging.getLogger(__name__)

Status = Literal["running", "done", "infeasible", "failed"]


@dataclass(frozen=True)
class TuningTrial:
    """One trial of a tuner.

    Attributes:
      number: 0, 1, ... in the order in which they were asked for.
      hyperparameters: what to try.
      status: what became of it.
      objective: what was told, in its own unit; None where there is no value.
    """

    number: int
    hyperparameters: Mapping[str, Any]
    status: Status
    objective: float | None


class Tuner:
    """Proposes hyperparameters by a prior, and takes in what came of them, in any order.

    Everything lies in the storage once a method returns; any number of tuners, in any number of processes,
    may work on one storage under one name, and one that is killed loses nothing.

    Args:
      prior: what `hyperbo.load_prior` returns.
      space: what to tune. For a parameter of the prior, a part of its range or a wider one, (lower, upper); a
        list of choices; one number, which is held; or a distribution of Optuna, such as
        `IntDistribution(8, 512, log=True)`. Those of the prior that are not named have its whole range. Other
        parameters are sampled without the prior.
      storage: address of a database, `sqlite:///runs.db` or any other that Optuna's storages open, or such a
        storage; None: memory.
      name: of the run in the storage.
      batch: what trials that are running mean for the next one: `kriging_believer`, `constant_liar`,
        `local_penalization` or `thompson_sampling`.
      seed: of all random numbers.

    Raises:
      InvalidInputError: a range, choice or name in `space` cannot be used, there is no such strategy, or the
        database cannot be used.
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
        prior: Prior,
        space: Mapping[str, Any] | None = None,
        storage: str | BaseStorage | None = None,
        name: str = "tuning",
        batch: str = "kriging_believer",
        seed: int = 0,
    ) -> None:
        self.prior = prior
        self.space = space_of(prior.description.search_space, {} if space is None else space)
        self._warping = output_warping(prior.description.output_warping)
        known = prior.description.search_space.names
        unknown = [key for key, each in self.space.items() if key not in known or placed(each) is None]
        if unknown:
            logger.warning("sampled without the prior, which does not know them: %s", ", ".join(unknown))
        sampler = HyperBOSampler(prior, batch=batch, seed=seed, search_space=self.space)
        identity = {
            "prior": prior.identity,
            "space": {key: json.loads(distribution_to_json(each)) for key, each in self.space.items()},
        }
        self.study: Study = opened_study(name, storage, sampler, self._warping.direction, identity)

    def ask(self) -> TuningTrial:
        """What to try next; it counts as running until something is told.

        Raises:
          InvalidInputError: the database cannot be used.
          NumericalError: the acquisition function is nowhere finite.
        """
        with database_errors(self.study):
            trial = self.study.ask()
            try:
                for name, distribution in self.space.items():
                    trial._suggest(name, distribution)
            except BaseException:
                # A trial that has nothing to try must not wait for its result for ever.
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
        """Say what came of a trial: its objective, that it is infeasible, or that it failed.

        Args:
          trial: what `ask` returned, or its number.
          objective: a finite number, in the unit and direction of the prior's, such as an error rate.
          infeasible: its hyperparameters have no result, such as where training diverges; others like them
            will be avoided.
          failed: something else went wrong; nothing is learned from it.

        Returns:
          The trial as it is now.

        Raises:
          InvalidInputError: no such trial, it was told before, or the objective is none that can be used;
            what was told before stays.
        """
        number = trial.number if isinstance(trial, TuningTrial) else _number(trial)
        value = self._checked(objective, infeasible, failed, where=f"trial {number}")
        with database_errors(self.study):
            found = self._running(number)
            if isinstance(trial, TuningTrial) and self._seen(found).hyperparameters != trial.hyperparameters:
                raise InvalidInputError(
                    "it has other hyperparameters here",
                    where=f"trial {number}",
                    fix="tell it to the tuner that was asked for it",
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
        """Take in a trial that was run before, or by other means.

        Args:
          hyperparameters: a value for each parameter of the space.
          objective: as in `tell`.
          infeasible: as in `tell`.

        Raises:
          InvalidInputError: a parameter is missing, unknown or outside of its range, or as in `tell`.
        """
        value = self._checked(objective, infeasible, False, where="trial to be added")
        values = inside(self.space, hyperparameters)
        state = TrialState.COMPLETE if value is not None else TrialState.FAIL
        template = create_trial(
            state=state,
            value=value,
            params=values,
            distributions=self.space,
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
            raise InvalidInputError("it was told before", where=f"trial {number}", fix=f"it stays {was}")
        if found.state == TrialState.WAITING or not self._is_whole(found):
            raise InvalidInputError(
                "it was never asked for to the end", where=f"trial {number}", fix="ask for another"
            )
        return found

    def _is_whole(self, trial: FrozenTrial) -> bool:
        """Whether all its values are known: another process may be about to choose them."""
        return trial.params.keys() >= self.space.keys()

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
            f"{given!r} is no trial", fix="give what `ask` returned, or its number"
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
