"""A sampler for Optuna with a pre-trained prior (extra `optuna`)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hyperbo.bayesopt.history import History, trial_stream
from hyperbo.errors import InvalidInputError
from hyperbo.priors.file import Prior
from hyperbo.priors.names import UNIVERSAL, load_prior
from hyperbo.tuning.axes import Choices, Range
from hyperbo.tuning.batches import BatchStrategy, require_strategy
from hyperbo.tuning.belief import Belief, extended, prior_belief
from hyperbo.tuning.doubts import Doubts
from hyperbo.tuning.optuna.codes import active_names, codes_of
from hyperbo.tuning.optuna.distributions import placed, plain_value, value_of
from hyperbo.tuning.optuna.study_history import PROPOSED, TOLD, history_of, wait_for_others
from hyperbo.tuning.optuna.whole_space import new_parameter
from hyperbo.tuning.proposals import PRIOR_WEIGHT, propose
from hyperbo.tuning.region import Region

logger = logging.getLogger(__name__)

_SEEDS = 2**32


class HyperBOSampler(BaseSampler):
    """Proposes the trials of a study with a prior that was pre-trained on other tasks.

    The prior is one component of a mixture with uninformed Gaussian processes. The study's trials weigh them,
    so that a prior that is wrong loses its say. The mixture's mean, then its expected improvement, is
    maximised over the suggested ranges. These may be narrower or wider than the prior's ranges; the prior's
    scaling applies to them. A choice of the prior may be suggested with some of its levels. All proposals are
    points of these ranges, with integers, steps and levels.

    A trial that fails or returns NaN is infeasible, unless its user attribute `hyperbo:failed` is set. A
    pruned trial counts with its last intermediate value. A running trial counts as the batch strategy says.

    Where the whole `search_space` is given, the universal prior extends the prior to parameters that it does
    not know. Else they are sampled independently. A parameter of the prior that is
    suggested only sometimes, or for the first time, is chosen given the values that the trial has so far.
    Where a trial lacks a parameter of the prior, the value in `fixed` stands in, or else the prior's best
    guess.

    Args:
      prior: the name of a prior, such as `pd1-mini/h-ekl`; its folder; a loaded prior; or what
        `hyperbo.tuning.universal_prior` returns.
      fixed: values of parameters of the prior that the objective holds fixed and does not suggest.
      batch: how running trials change the next one: `constant_liar`, `kriging_believer`,
        `local_penalization` or `thompson_sampling`.
      seed: of all random numbers, with the trial's number; None: a new seed each time.
      independent_sampler: for parameters that the prior does not know; None: Optuna's TPE.
      search_space: what every trial will suggest, if that is known before the first trial. All values are
        then chosen when the trial begins, after those of trials that began earlier in other processes.
      prior_weight: of the prior before any trial, above 0; 1: the prior alone, by GP-UCB.

    Raises:
      NotAvailableError: there is no such prior.
      InvalidInputError: there is no such strategy, the weight is none, a fixed value is no parameter of the
        prior, the prior's scaling is not defined on a range, or the seed is outside of [0, 2^32).

    >>> import math, optuna
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
        prior: Prior | Belief | str | os.PathLike[str] | Any,
        *,
        fixed: Mapping[str, Any] | None = None,
        batch: str = "constant_liar",
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        prior_weight: float = PRIOR_WEIGHT,
    ) -> None:
        if not isinstance(prior_weight, Real) or not 0.0 < prior_weight <= 1.0:
            raise InvalidInputError(f"prior_weight = {prior_weight}", fix="give one above 0, and at most 1")
        if seed is not None and (not isinstance(seed, Integral) or not 0 <= seed < _SEEDS):
            raise InvalidInputError(f"seed = {seed}", fix="give one from 0 to 4294967295")
        belief = prior if isinstance(prior, Belief) else prior_belief(_loaded(prior))
        self._strategy: BatchStrategy = require_strategy(batch)
        self._prior_weight = float(prior_weight)
        if search_space is not None and self._prior_weight < 1.0:
            new = {name: each for name, each in search_space.items() if name not in belief.space.names}
            made = [new_parameter(name, each) for name, each in new.items()]
            # A value that is held has no column that anything could be learned of.
            others = [each for each in made if each is not None and each.columns]
            belief = extended(belief, others, self._prior_weight)
        self._belief = belief
        self.doubts = Doubts(belief)
        self._warping = belief.warping
        self._space = belief.space
        self._fixed = {name: plain_value(value) for name, value in (fixed or {}).items()}
        Region.of(self._space, self._fixed)
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._independent = independent_sampler
        self._given: dict[str, BaseDistribution] | None = None
        self._named: frozenset[str] = frozenset()
        if search_space is not None:
            Region.of(self._space, self._ranges(search_space))
            self._given, self._named = self._known(search_space), frozenset(search_space)
        self._intersection = IntersectionSearchSpace()
        self._guess: dict[str, float] | None = None
        self._chosen: dict[int, dict[str, Any]] = {}
        self._is_said = False
        # Where threads ask for trials, each trial must see what the earlier ones try.
        self._choosing = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_choosing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._choosing = threading.RLock()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of the prior that every trial suggests."""
        if self._given is not None:
            return self._given
        return self._known(self._intersection.calculate(study))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose values of parameters of the prior together.

        Raises:
          InvalidInputError: the study has several objectives or another direction than the prior, or the
            prior's scaling is not defined on a range or at a value.
          NumericalError: the acquisition function is nowhere finite.
        """
        self._require_direction(study)
        if not search_space:
            return {}
        chosen = self._chosen.pop(trial._trial_id, {})
        if chosen.keys() == search_space.keys():
            return chosen
        return self._proposed(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose the value of one parameter, with the prior if the prior knows the parameter.

        Raises:
          InvalidInputError: as in `sample_relative`.
          NumericalError: the acquisition function is nowhere finite.
        """
        self._require_direction(study)
        if not self._ranges({param_name: param_distribution}):
            self._say_unknown(trial, param_name)
            independent = self._independent_of(trial)
            return independent.sample_independent(study, trial, param_name, param_distribution)
        return self._proposed(study, trial, {param_name: param_distribution})[param_name]

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Choose all values now if the space is known, so that other processes see them from now on."""
        self._independent_of(trial).before_trial(study, trial)
        if self._given:
            try:
                self._require_direction(study)
                wait_for_others(study, trial)
                self._chosen[trial._trial_id] = self._proposed(study, trial, self._given)
            except BaseException:
                # A trial without hyperparameters must not wait for its result for ever.
                study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
                raise

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Mark a failed trial as told; a trial that a killed process left has no mark."""
        self._independent_of(trial).after_trial(study, trial, state, values)
        self._chosen.pop(trial._trial_id, None)
        for value in values or ():
            self.doubts.of_value(value, f"trial {trial.number}")
        if state == TrialState.FAIL:
            study._storage.set_trial_system_attr(trial._trial_id, TOLD, True)

    def reseed_rng(self) -> None:
        """Reseed the independent sampler that was given; all else has its own stream for each trial."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def _independent_of(self, trial: FrozenTrial) -> BaseSampler:
        if self._independent is not None:
            return self._independent
        seed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0]
        return TPESampler(seed=int(seed))

    def _known(self, distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
        """The distributions over numbers of parameters of the prior."""
        return {name: distributions[name] for name in self._ranges(distributions)}

    def _ranges(self, distributions: Mapping[str, BaseDistribution]) -> dict[str, Range | Choices | float]:
        """The ranges, choices and fixed values of the prior's parameters, without texts for numbers."""
        space = self._space
        shared = {name: each for name, each in distributions.items() if name in space.names}
        of_prior = {name: placed(space.parameter(name), each) for name, each in shared.items()}
        return {name: each for name, each in of_prior.items() if each is not None}

    def _is_whole(self, values: Mapping[str, Any]) -> bool:
        """Whether a trial has all values that it will have, of the space that was given."""
        return values.keys() >= active_names(self._space, self._named, values)

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
        self, study: Study, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose values given those that the trial has, and write them where other processes see them."""
        with self._choosing:
            known = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            ranges = self._ranges(distributions)
            space = self._space
            codes = {**self._guessed(), **codes_of(space, known)}
            held = {name: space.parameter(name).value(code) for name, code in codes.items()}
            free = {name: each for name, each in ranges.items() if name not in known}
            is_whole = None if self._given is None else self._is_whole
            history = history_of(study, trial, space, self._warping, self._guessed(), is_whole)
            stream = trial_stream(self._seed, trial.number, distributions)
            chosen = self._choice(Region.of(space, {**held, **free}), history, stream)
            values = {
                name: known[name] if name in known else value_of(space.parameter(name), each, chosen[name])
                for name, each in distributions.items()
            }
            of_prior = {name: each for name, each in known.items() if name in space.names}
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, {**of_prior, **values})
        return values

    def _choice(self, region: Region, history: History, random: np.random.Generator) -> dict[str, float]:
        """The codes of what to try next; an inactive parameter has one, too."""
        belief, weight = self._belief, self._prior_weight
        mapped = belief.is_mapped
        codes = propose(belief.gp, region, history, random, self._strategy, mapped, prior_weight=weight)
        return dict(zip(self._space.names, codes.tolist(), strict=True))

    def _guessed(self) -> Mapping[str, float]:
        """The codes of the prior's best guess before any trial, with the fixed values."""
        if self._guess is None:
            region = Region.of(self._space, self._fixed)
            none = np.zeros((0, self._space.dimension))
            random = np.random.default_rng(self._seed)
            self._guess = self._choice(region, History(none, np.zeros(0), none), random)
        return self._guess

    @property
    def belief(self) -> Belief:
        """What it believes before any trial, on the whole space that was given."""
        return self._belief

    def _say_unknown(self, trial: FrozenTrial, name: str) -> None:
        if not self._is_said and not self._known(trial.distributions):
            logger.warning(
                "the prior says nothing of %s: its parameters are %s", name, ", ".join(self._space.names)
            )
            self._is_said = True


def _loaded(prior: Any) -> Prior:
    if isinstance(prior, str) and prior == UNIVERSAL:
        raise InvalidInputError(
            "the universal prior needs a space and a direction",
            where="HyperBOSampler",
            fix="give hyperbo.tuning.universal_prior(space, direction), or use a Tuner",
        )
    return load_prior(prior)
