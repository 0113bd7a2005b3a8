"""A sampler for Optuna that proposes by a pre-trained prior (extra `optuna`)."""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, SupportsFloat

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hyperbo.errors import InvalidInputError
from hyperbo.integrations.distributions import as_number, placed, value_of
from hyperbo.prior import Prior
from hyperbo.published import load_prior
from hyperbo.tuning import (
    BatchStrategy,
    Choices,
    History,
    Range,
    Region,
    coordinates,
    propose,
    require_strategy,
)
from hyperbo.warping import output_warping

logger = logging.getLogger(__name__)

# What a trial is going to try, written before its parameters are suggested one by one.
PROPOSED = "hyperbo:proposed"
# Set on a failed trial of which the hyperparameters are not the cause.
FAILED = "hyperbo:failed"
# So long a trial waits for those before it to say what they try; one that is older was killed, or is no ask.
_PATIENCE, _POLL = timedelta(seconds=10), 0.02


class HyperBOSampler(BaseSampler):
    """Proposes the trials of a study by a prior that was pre-trained on other tasks.

    GP-UCB of the prior, conditioned on the study's trials, is maximised over the ranges suggested. They are
    taken in the prior's scaling; they may be a part of the prior's or reach beyond; integers, steps and
    choices among numbers are rounded to. Trials that failed count as infeasible, trials that run as the batch
    strategy says, and pruned ones are left out. Parameters that the prior does not know are sampled
    independently. A parameter of the prior that is suggested only sometimes, or for the first time, is chosen
    by the prior given what the trial has so far; where a trial lacks one, it is taken to be at the prior's
    own best guess, or at the value in `fixed`.

    Args:
      prior: a prior, or what `hyperbo.load_prior` takes: a folder, or a name such as `pd1-mini/h-ekl`.
      fixed: values of parameters of the prior that the objective holds and does not suggest.
      batch: what running trials mean for the next: `constant_liar`, `kriging_believer`, `local_penalization`
        or `thompson_sampling`.
      seed: of all random numbers; None: another one each time.
      independent_sampler: for parameters that the prior does not know; None: Optuna's TPE.
      search_space: what will be suggested, where that is known before the first trial.

    Raises:
      InvalidInputError: no such strategy, or a fixed value that is no parameter of the prior.

    >>> import optuna
    >>> sampler = HyperBOSampler("pd1-mini/h-ekl", seed=0, fixed={"power": 1.0, "decay_steps_factor": 0.9})
    >>> study = optuna.create_study(sampler=sampler)
    >>> def objective(trial):
    ...     rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    ...     return abs(math.log10(rate) + 1.5) / 10 + trial.suggest_float("momentum", 0.0, 0.99) / 100
    >>> study.optimize(objective, n_trials=2)
    >>> len(study.trials)
    2
    """

    def __init__(
        self,
        prior: Prior | str,
        *,
        fixed: Mapping[str, SupportsFloat] | None = None,
        batch: str = "constant_liar",
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
    ) -> None:
        self._prior = prior if isinstance(prior, Prior) else load_prior(prior)
        self._strategy: BatchStrategy = require_strategy(batch)
        self._warping = output_warping(self._prior.description.output_warping)
        self._space = self._prior.description.search_space
        self._fixed = {name: float(value) for name, value in (fixed or {}).items()}
        Region.of(self._space, self._fixed)
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._independent = independent_sampler or TPESampler(seed=self._seed)
        self._given = None if search_space is None else self._known(search_space)
        self._intersection = IntersectionSearchSpace()
        self._guess: dict[str, float] | None = None
        self._is_said = False

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of the prior that are known to be suggested."""
        if self._given is not None:
            return self._given
        return self._known(self._intersection.calculate(study))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose values of parameters of the prior together.

        Raises:
          InvalidInputError: the study has several objectives or another direction than the prior, or a range
            or a value has no place in the prior.
          NumericalError: the acquisition function is nowhere finite.
        """
        self._require_direction(study)
        if not search_space:
            return {}
        enqueued = trial.system_attrs.get("fixed_params", {})
        values = self._proposed(study, trial, search_space, {**enqueued, **trial.params})
        study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, values)
        return values

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose the value of one parameter, by the prior where it knows the parameter.

        Raises:
          InvalidInputError, NumericalError: as `sample_relative`.
        """
        self._require_direction(study)
        if not self._known({param_name: param_distribution}):
            self._say_unknown(trial, param_name)
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        return self._proposed(study, trial, {param_name: param_distribution}, trial.params)[param_name]

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Prepare the independent sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell the independent sampler."""
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Reseed the independent sampler; choices by the prior have a stream for every trial."""
        self._independent.reseed_rng()

    def _known(self, distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
        """Those of parameters of the prior, over numbers."""
        return {name: distributions[name] for name in self._ranges(distributions)}

    def _ranges(self, distributions: Mapping[str, BaseDistribution]) -> dict[str, Range | Choices | float]:
        """What those of parameters of the prior, over numbers, leave to choose."""
        of_prior = {name: placed(each) for name, each in distributions.items() if name in self._space.names}
        return {name: each for name, each in of_prior.items() if each is not None}

    def _require_direction(self, study: Study) -> None:
        if len(study.directions) != 1:
            raise InvalidInputError("the study has several objectives", fix="use another sampler for it")
        wanted = self._warping.direction
        if (study.direction == StudyDirection.MINIMIZE) != (wanted == "minimize"):
            raise InvalidInputError(
                f"the study is to {study.direction.name.lower()}, the objective of the prior to {wanted}",
                fix="turn objective and direction around, such as an accuracy into an error rate",
            )

    def _proposed(
        self,
        study: Study,
        trial: FrozenTrial,
        distributions: Mapping[str, BaseDistribution],
        known: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Values of the distributions, given those that are known already."""
        ranges: dict[str, Range | Choices | float] = {**self._guessed(), **_numbers(known, self._space.names)}
        ranges |= {name: each for name, each in self._ranges(distributions).items() if name not in known}
        if self._given is not None:
            _wait(study, trial)
        region = Region.of(self._space, ranges)
        salt = zlib.crc32("\n".join(sorted(distributions)).encode())
        random = np.random.default_rng([self._seed, trial.number, salt])
        raw = self._choice(region, self._history(study, trial), random)
        chosen = dict(zip(self._space.names, raw.tolist(), strict=True))
        return {
            name: known[name] if name in known else value_of(each, chosen[name])
            for name, each in distributions.items()
        }

    def _choice(self, region: Region, history: History, random: np.random.Generator) -> np.ndarray:
        mapped = self._prior.description.preparation == "online"
        return propose(self._prior.gp, region, history, random, self._strategy, mapped)

    def _guessed(self) -> Mapping[str, float]:
        """The most promising point of the prior, with the fixed values."""
        if self._guess is None:
            region = Region.of(self._space, self._fixed)
            none = np.zeros((0, self._space.dimension))
            nothing = History(none, np.zeros(0), none)
            raw = self._choice(region, nothing, np.random.default_rng(self._seed))
            self._guess = dict(zip(self._space.names, raw.tolist(), strict=True))
        return self._guess

    def _history(self, study: Study, trial: FrozenTrial) -> History:
        finished, values, pending = [], [], []
        for each, raw in self._placed_trials(study, trial):
            if each.state == TrialState.RUNNING:
                pending.append(raw)
            else:
                finished.append(raw)
                values.append(self._warped(each))
        empty = np.zeros((0, self._space.dimension))
        x, running = (np.array(rows) if rows else empty for rows in (finished, pending))
        return History(
            coordinates(self._space, x), np.array(values, np.float64), coordinates(self._space, running)
        )

    def _placed_trials(self, study: Study, trial: FrozenTrial) -> Iterator[tuple[FrozenTrial, list[float]]]:
        """The trials that say something, with their values in the order of the prior's parameters."""
        states = (TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING)
        for each in study.get_trials(deepcopy=False, states=states):
            values = _numbers({**each.system_attrs.get(PROPOSED, {}), **each.params}, self._space.names)
            if each.number == trial.number or not values or each.user_attrs.get(FAILED, False):
                continue
            if each.state == TrialState.RUNNING and self._is_broken_off(each):
                continue
            whole = {**self._guessed(), **values}
            yield each, [whole[name] for name in self._space.names]

    def _is_broken_off(self, trial: FrozenTrial) -> bool:
        """Whether its process was killed while it chose: with a known space, that takes moments."""
        whole = self._given is None or trial.params.keys() >= self._given.keys()
        return not (whole or _is_recent(trial))

    def _warped(self, trial: FrozenTrial) -> float:
        value = trial.value if trial.state == TrialState.COMPLETE else None
        if value is None or not math.isfinite(value):
            return math.nan
        return warped(self._warping.name, value, where=f"trial {trial.number}")

    def _say_unknown(self, trial: FrozenTrial, name: str) -> None:
        if not self._is_said and not self._known(trial.distributions):
            logger.warning(
                "the prior says nothing of %s: its parameters are %s", name, ", ".join(self._space.names)
            )
            self._is_said = True


def warped(warping: str, value: float, where: str = "") -> float:
    """A raw objective as the value that is maximised.

    Raises:
      InvalidInputError: the warping has no value there.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = float(output_warping(warping).warp(np.array([value], np.float64))[0])
    if not math.isfinite(y):
        raise InvalidInputError(
            f"objective {value} has no place under the prior's output warping {warping}",
            where=where,
            fix="tell an error rate or a loss, which is not negative"
            if warping == "negative_log"
            else "tell a finite number",
        )
    return y


def _numbers(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Those of the names that have a number."""
    return {name: number for name in names if (number := as_number(values.get(name))) is not None}


def _wait(study: Study, trial: FrozenTrial) -> None:
    """Let trials that were begun a moment before say what they try: else all processes try the same."""
    while True:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        before = (each for each in running if each.number < trial.number)
        if not any(PROPOSED not in each.system_attrs and _is_recent(each) for each in before):
            return
        time.sleep(_POLL)


def _is_recent(trial: FrozenTrial) -> bool:
    return trial.datetime_start is not None and trial.datetime_start > datetime.now() - _PATIENCE
