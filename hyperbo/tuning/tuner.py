"""Ask and tell: tuning a model with a pre-trained prior, the trials in a database (extra `optuna`)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from optuna.distributions import distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import TrialState, create_trial

from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import HyperBOError
from hyperbo.priors.file import Prior
from hyperbo.priors.names import UNIVERSAL, load_prior
from hyperbo.tuning.optimize import run_trials
from hyperbo.tuning.optuna.codes import active_names
from hyperbo.tuning.optuna.database import database_errors, opened_study, place_of
from hyperbo.tuning.optuna.distributions import inside, words
from hyperbo.tuning.optuna.sampler import HyperBOSampler
from hyperbo.tuning.optuna.study_history import FAILED, REASON, TOLD
from hyperbo.tuning.optuna.trials import is_whole, parents_first, running_trial, seen, told_value
from hyperbo.tuning.optuna.whole_space import begun, say_unknown
from hyperbo.tuning.proposals import PRIOR_WEIGHT
from hyperbo.tuning.trial import TuningTrial, best_of, described, number_of


class Tuner:
    """Proposes hyperparameters with a prior, and learns from their results, which may come in any order.

    Either `optimize` runs a function of yours, or your own loop asks for a trial, runs it, and tells its
    result. When a method returns, everything is in the storage: a tuner that is killed loses nothing. Any
    number of tuners, in any number of processes, may share one storage and name.

    Args:
      prior: the name of a prior, such as `pd1-mini/h-ekl` (`hyperbo prior list` lists them); its folder; what
        `hyperbo.load_prior` returns; or `universal`, for any space, which is then given whole.
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
      direction: `minimize` or `maximize`: of the objective that is told. None: that of the prior;
        `universal` needs one. A prior of error rates, such as those that ship, takes `maximize` for an
        accuracy from 0 to 1.

    Attributes:
      prior: the prior; None for `universal`.
      space: the distributions of all parameters that are tuned, by name.
      belief: what is believed before any trial, on the whole space.
      doubts: what warns of values of another unit or direction.
      study: the study of Optuna that holds the trials, for its dashboards and plots.

    Raises:
      NotAvailableError: there is no such prior. The message has the nearest names.
      InvalidInputError: a range, choice or name in `space` cannot be used, there is no such strategy, the
        weight is none, or the database cannot be used.
      VersionConflictError: the run in the storage was begun with another prior or space.

    A loop of your own, here with the last parameter held:

    >>> tuner = Tuner("pd1-mini/h-ekl", space={"learning_rate": (1e-4, 1.0), "power": 1.0})
    >>> trial = tuner.ask()
    >>> sorted(trial.hyperparameters)
    ['decay_steps_factor', 'learning_rate', 'momentum', 'power']
    >>> tuner.tell(trial, 0.23).status
    'done'
    >>> tuner.tell(tuner.ask(), infeasible=True).status
    'infeasible'
    >>> tuner
    Tuner(H-EKL prior of pd1/mini:2.0.0, to minimize; run 'tuning' in memory)
      learning_rate [0.0001, 1.0], power 1.0, momentum [0.0, 0.999], decay_steps_factor [0.01, 0.99]
      2 trials: 1 done, 1 infeasible; best 0.23 in trial 0
    """

    def __init__(
        self,
        prior: Prior | str | os.PathLike[str] | Any,
        space: Mapping[str, Any] | SearchSpace | Any | None = None,
        storage: str | BaseStorage | Any | None = None,
        name: str = "tuning",
        batch: str = "kriging_believer",
        seed: int = 0,
        prior_weight: float = PRIOR_WEIGHT,
        direction: str | None = None,
    ) -> None:
        is_universal = isinstance(prior, str) and prior == UNIVERSAL
        self.prior: Prior | None = None if is_universal else load_prior(prior)
        belief, self.space = begun(self.prior, space, direction)
        sampler = HyperBOSampler(
            belief, batch=batch, seed=seed, search_space=self.space, prior_weight=prior_weight
        )
        self.belief = belief = sampler.belief
        self.doubts = sampler.doubts
        self._warping = belief.warping
        say_unknown(belief, self.space)
        identity = {
            "prior": belief.identity,
            "space": {key: json.loads(distribution_to_json(each)) for key, each in self.space.items()},
            **({"extended_by": belief.extended_by} if belief.extended_by else {}),
        }
        self.study: Study = opened_study(name, storage, sampler, self._warping.direction, identity)

    def __repr__(self) -> str:
        said = None if self.prior is None else self.prior.description
        what = "universal prior" if said is None else f"{said.method} prior of {said.dataset}"
        where = f"run {self.study.study_name!r} in {place_of(self.study)}"
        try:
            standing = described(self.trials, self.best)
        except HyperBOError as error:
            standing = str(error)
        return (
            f"Tuner({what}, to {self._warping.direction}; {where})\n"
            f"  {', '.join(f'{name} {words(each)}' for name, each in self.space.items())}\n"
            f"  {standing}"
        )

    def optimize(self, function: Callable[..., Any], trials: int = 20, jobs: int = 1) -> TuningTrial | None:
        """Run trials of a function until so many have ended, and return the best.

        The function is called with the hyperparameters as keywords, such as `train(learning_rate=0.1,
        power=1.0, momentum=0.9, decay_steps_factor=0.5)`, held values included. It returns the objective, a
        number. NaN and infinity mean that training diverged: the trial is infeasible. So it is where the
        function raises `hyperbo.Infeasible`.

        Any other exception ends the run: trials that run at the same time are waited for and told, and then
        the exception is raised. Ctrl-C ends the run at once. What has ended is kept in both cases. What has
        not is marked as failed, so that nothing waits for it, and the next call tries the same
        hyperparameters again.

        Args:
          function: what is tuned.
          trials: how many trials of the run shall have ended, those of earlier calls included: a second call
            with the same number runs what is missing. Infeasible trials count, failed ones do not.
          jobs: how many trials run at the same time, in threads of this process: the function then needs no
            pickling and shares a loaded dataset and a GPU. NumPy, JAX and PyTorch let other threads run while
            they compute. For functions that do not, start several processes with one `storage`.

        Returns:
          The best trial of the run; None where all are infeasible.

        Raises:
          InvalidInputError: the function cannot be called with these parameters or returns no number, or an
            argument or the database cannot be used.

        >>> def train(learning_rate, power, momentum, decay_steps_factor):
        ...     if learning_rate > 5.0:
        ...         raise Infeasible("diverged")
        ...     return 0.1 + 0.05 * momentum
        >>> tuner = Tuner("pd1-mini/h-ekl")
        >>> best = tuner.optimize(train, trials=2)
        >>> best.objective < 0.15, len(tuner.trials)
        (True, 2)
        >>> tuner.optimize(train, trials=2) == best     # there are two: nothing runs
        True
        """
        self.doubts.of_name(getattr(function, "__name__", ""), "optimize")
        run_trials(self, function, trials, jobs)
        return self.best

    def ask(self) -> TuningTrial:
        """Propose what to try next. The trial is running until its result is told.

        Raises:
          InvalidInputError: the database cannot be used.
          NumericalError: the acquisition function is nowhere finite.
        """
        with database_errors(self.study):
            trial = self.study.ask()
            try:
                known = self.belief.space
                for name in parents_first(known, self.space):
                    if name in active_names(known, self.space, trial.params):
                        trial._suggest(name, self.space[name])
            except BaseException:
                # A trial without hyperparameters must not wait for its result for ever.
                trial.set_user_attr(FAILED, True)
                self.study.tell(trial, state=TrialState.FAIL)
                raise
            return seen(self.study._storage.get_trial(trial._trial_id))

    def tell(
        self,
        trial: TuningTrial | Any,
        objective: Any = None,
        *,
        infeasible: bool = False,
        failed: bool = False,
        reason: str = "",
    ) -> TuningTrial:
        """Tell the result of a trial: its objective, that it is infeasible, or that it failed.

        A value far from those of the prior's tasks, such as 93 for an error rate, is taken with one warning.

        Args:
          trial: what `ask` returned, or its number.
          objective: a finite number, such as an error rate, with the unit and direction of the run.
          infeasible: the hyperparameters have no result, as when training diverges. Similar ones are avoided.
          failed: something else went wrong. Nothing is learned from the trial.
          reason: why there is no result, for a reader; kept as the trial's user attribute `hyperbo:reason`.

        Returns:
          The trial with its result.

        Raises:
          InvalidInputError: there is no such trial, its result was told before, or the objective cannot be
            used. An earlier result stays.
        """
        number = number_of(trial)
        value = told_value(self._warping, objective, infeasible, failed, f"trial {number}")
        with database_errors(self.study):
            found = running_trial(self.study, trial, self.belief.space, self.space)
            state = TrialState.COMPLETE if value is not None else TrialState.FAIL
            try:
                if failed:
                    self.study._storage.set_trial_user_attr(found._trial_id, FAILED, True)
                if reason:
                    self.study._storage.set_trial_user_attr(found._trial_id, REASON, reason)
                self.study.tell(number, value, state=state)
            except (ValueError, UpdateFinishedTrialError):
                # Another process has told it since.
                running_trial(self.study, trial, self.belief.space, self.space)
                raise
            return seen(self.study._storage.get_trial(found._trial_id))

    def give_up(self, trial: TuningTrial, reason: str = "") -> None:
        """Mark a running trial as failed, and propose the same hyperparameters again before others.

        Args:
          trial: what `ask` returned.
          reason: as in `tell`.

        Raises:
          InvalidInputError: as in `tell`.
        """
        self.tell(trial, failed=True, reason=reason)
        with database_errors(self.study):
            self.study.enqueue_trial(dict(trial.hyperparameters))

    def add(
        self, hyperparameters: Mapping[str, Any] | Any, objective: Any = None, *, infeasible: bool = False
    ) -> TuningTrial:
        """Add a trial that was run earlier or elsewhere.

        Args:
          hyperparameters: a value for each parameter; one a rounding outside of its range is the bound.
          objective: as in `tell`.
          infeasible: as in `tell`.

        Raises:
          InvalidInputError: a parameter is missing, unknown or outside of its range, the objective cannot be
            used, or the database cannot be used.
        """
        value = told_value(self._warping, objective, infeasible, False, "trial to be added")
        values = inside(self.space, hyperparameters, self.belief.space)
        if value is not None:
            self.doubts.of_value(value, "trial to be added")
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
            return seen(storage.get_trial(storage.create_new_trial(self.study._study_id, template)))

    @property
    def trials(self) -> list[TuningTrial]:
        """All trials, in the order of their numbers."""
        with database_errors(self.study):
            found = self.study.get_trials(deepcopy=False)
            return [seen(each) for each in found if is_whole(each, self.belief.space, self.space)]

    @property
    def best(self) -> TuningTrial | None:
        """The trial with the best objective; None while there is none."""
        return best_of(self.trials, self._warping.direction)
