"""The methods of `benchmarks.tuning`: each is asked for a point and told its result.

All search the same space with the same scaling; methods without a prior search its unit cube. Optuna's GP
sampler and BoTorch need PyTorch, which is not a dependency.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import optuna
from jaxtyping import Float64
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import create_trial

from hyperbo.data.search_space import SearchSpace
from hyperbo.priors.file import Prior
from hyperbo.tuning.tuner import Tuner

WITH_PRIOR = ("H-EKL", "H-NLL")
METHODS = (*WITH_PRIOR, "TPE", "GP", "BoTorch", "Rand")
# Points before the first model; and how the acquisition function is maximised.
SOBOL_POINTS, RESTARTS, RAW_SAMPLES = 5, 10, 512

Point = Float64[np.ndarray, " d"]


class Told(NamedTuple):
    """A finished trial: raw hyperparameters, and the objective to be minimised, NaN if infeasible."""

    point: Point
    objective: float


class Setting(NamedTuple):
    """Settings of a run.

    Attributes:
      task: name of the task.
      seed: seed of the run.
      space: the search space.
      worst: the value of an infeasible trial for methods without infeasible trials.
      prior: the prior, for a method that uses one.
    """

    task: str
    seed: int
    space: SearchSpace
    worst: float
    prior: Prior | None = None

    def stream(self, count: int) -> int:
        """A seed for random numbers after so many trials."""
        entropy = [self.seed, zlib.crc32(self.task.encode()), count]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])


class Peer(Protocol):
    """A run of a method."""

    def ask(self) -> Point:
        """Raw hyperparameters to try next, in the order of the space."""
        ...

    def tell(self, told: Told) -> None:
        """Tell the trial made for the last proposal, at its point or near it."""
        ...


def begin(method: str, setting: Setting, told: Sequence[Told]) -> Peer:
    """Start a run, or continue one after the trials told, with new random numbers."""
    if method in WITH_PRIOR:
        return TunerPeer(setting, told)
    if method in ("TPE", "GP"):
        return OptunaPeer(setting, told, method)
    return BoTorchPeer(setting, told) if method == "BoTorch" else RandomPeer(setting, told)


class TunerPeer:
    """`hyperbo.Tuner`, by default in memory, with its defaults."""

    def __init__(self, setting: Setting, told: Sequence[Told], storage: str | None = None) -> None:
        if setting.prior is None:
            raise ValueError("no prior")
        self._names = setting.space.names
        self._tuner = Tuner(setting.prior, storage=storage, seed=setting.stream(0))
        for each in told:
            self._add(each)

    def ask(self) -> Point:
        """By the prior."""
        self._asked = self._tuner.ask()
        return np.array([self._asked.hyperparameters[name] for name in self._names])

    def tell(self, told: Told) -> None:
        """Infeasible trials as such."""
        if self._asked.hyperparameters != self._values(told):
            self._tuner.tell(self._asked, failed=True)
            self._add(told)
        elif np.isnan(told.objective):
            self._tuner.tell(self._asked, infeasible=True)
        else:
            self._tuner.tell(self._asked, told.objective)

    def _add(self, told: Told) -> None:
        infeasible = bool(np.isnan(told.objective))
        self._tuner.add(self._values(told), None if infeasible else told.objective, infeasible=infeasible)

    def _values(self, told: Told) -> dict[str, float]:
        return dict(zip(self._names, told.point.tolist(), strict=True))


class OptunaPeer:
    """A sampler of Optuna with its defaults, in memory, on the unit cube."""

    def __init__(self, setting: Setting, told: Sequence[Told], sampler: str) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = setting.stream(len(told))
        made = (
            optuna.samplers.TPESampler(seed=seed)
            if sampler == "TPE"
            else optuna.samplers.GPSampler(seed=seed)
        )
        self._setting, self._study = setting, optuna.create_study(sampler=made)
        names = [f"x{i}" for i in range(setting.space.dimension)]
        self._distributions: dict[str, BaseDistribution] = {
            name: FloatDistribution(0.0, 1.0) for name in names
        }
        for each in told:
            self._add(each)

    def ask(self) -> Point:
        """By the sampler."""
        self._trial = self._study.ask(self._distributions)
        x = np.array([self._trial.params[name] for name in self._distributions])
        self._asked = self._setting.space.from_unit(x[None])[0]
        return self._asked

    def tell(self, told: Told) -> None:
        """Infeasible trials as the worst value."""
        if np.array_equal(told.point, self._asked):
            self._study.tell(self._trial, counted(told, self._setting))
        else:
            # Both samplers leave failed trials out.
            self._study.tell(self._trial, state=optuna.trial.TrialState.FAIL)
            self._add(told)

    def _add(self, told: Told) -> None:
        x = self._setting.space.to_unit(told.point[None])[0].clip(0.0, 1.0)
        values = dict(zip(self._distributions, x.tolist(), strict=True))
        self._study.add_trial(
            create_trial(value=counted(told, self._setting), params=values, distributions=self._distributions)
        )


class BoTorchPeer:
    """BoTorch with its defaults, on the unit cube: SingleTaskGP and qLogNoisyExpectedImprovement."""

    def __init__(self, setting: Setting, told: Sequence[Told]) -> None:
        self._setting = setting
        self._x: list[Point] = []
        self._y: list[float] = []
        for each in told:
            self.tell(each)

    def ask(self) -> Point:
        """By the largest acquisition value found."""
        import torch
        from botorch.utils.sampling import draw_sobol_samples

        space, count = self._setting.space, len(self._y)
        bounds = torch.tensor([[0.0] * space.dimension, [1.0] * space.dimension], dtype=torch.double)
        if count < SOBOL_POINTS:
            drawn = draw_sobol_samples(bounds, n=SOBOL_POINTS, q=1, seed=self._setting.stream(0))
            x = drawn[count, 0]
        else:
            torch.manual_seed(self._setting.stream(count))
            x = self._best(bounds)
        return space.from_unit(x.numpy().clip(0.0, 1.0)[None])[0]

    def tell(self, told: Told) -> None:
        """Infeasible trials as the worst value."""
        self._x.append(self._setting.space.to_unit(told.point[None])[0])
        self._y.append(counted(told, self._setting))

    def _best(self, bounds: Any) -> Any:
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x, y = torch.tensor(np.array(self._x)), -torch.tensor(np.array(self._y))[:, None]
        model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedImprovement(model, X_baseline=x, prune_baseline=True)
        points, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return points[0]


class RandomPeer:
    """Uniform in the unit cube."""

    def __init__(self, setting: Setting, told: Sequence[Told]) -> None:
        self._setting, self._count = setting, len(told)

    def ask(self) -> Point:
        """A draw."""
        random = np.random.default_rng(self._setting.stream(self._count))
        return self._setting.space.from_unit(random.uniform(size=(1, self._setting.space.dimension)))[0]

    def tell(self, told: Told) -> None:
        """Nothing is learned."""
        self._count += 1


def counted(told: Told, setting: Setting) -> float:
    """The objective, or the worst value of an infeasible trial."""
    return setting.worst if np.isnan(told.objective) else told.objective
