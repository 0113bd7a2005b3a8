from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import hyperbo
from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Condition, Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.methods.universal.file import read_hyperprior
from hyperbo.priors.names import SHIPPED
from hyperbo.tuning import HyperBOSampler, Tuner, TuningTrial, universal_prior
from hyperbo.tuning.optuna.whole_space import new_parameter, whole_space

# Three columns, whatever else differs: one program serves all tests.
SPACE: dict[str, Any] = {"lr": (1e-5, 1e-1), "depth": (1, 4), "act": ["relu", "tanh"]}


def error(values: dict[str, Any]) -> float:
    """Best at a rate of 1e-3, a depth of 3 and tanh."""
    return (
        0.1 * (math.log10(values["lr"]) + 3.0) ** 2
        + 0.05 * abs(values["depth"] - 3)
        + (0.1 if values["act"] == "relu" else 0.0)
    )


def tuned(trials: int, unit: Any = lambda value: value, **settings: Any) -> list[TuningTrial]:
    tuner = Tuner("universal", SPACE, direction="minimize", **settings)
    for _ in range(trials):
        trial = tuner.ask()
        tuner.tell(trial, unit(error(dict(trial.hyperparameters))))
    return tuner.trials


def test_any_space_is_tuned_in_its_own_types() -> None:
    trials = tuned(15)
    for each in trials:
        assert 1e-5 <= each.hyperparameters["lr"] <= 1e-1
        assert each.hyperparameters["depth"] in (1, 2, 3, 4)
        assert isinstance(each.hyperparameters["depth"], int)
        assert each.hyperparameters["act"] in ("relu", "tanh")
    best = min(trials, key=lambda each: each.objective or 0.0)
    assert best.objective is not None
    # Random search has a median of about 0.07 after 15 trials.
    assert best.objective < 0.03
    assert best.hyperparameters["act"] == "tanh"


def test_the_unit_of_the_objective_does_not_matter() -> None:
    plain, other = tuned(6), tuned(6, unit=lambda value: math.exp(30.0 * value) - 7.0)
    assert [each.hyperparameters for each in plain] == [each.hyperparameters for each in other]


def test_an_objective_may_be_maximised() -> None:
    tuner = Tuner("universal", SPACE, direction="maximize")
    for _ in range(6):
        trial = tuner.ask()
        tuner.tell(trial, -error(dict(trial.hyperparameters)))
    assert [each.hyperparameters for each in tuner.trials] == [each.hyperparameters for each in tuned(6)]
    assert tuner.best is not None
    assert tuner.best.objective == max(each.objective for each in tuner.trials if each.objective is not None)


def test_infeasible_trials_are_left_behind_even_before_any_value() -> None:
    tuner = Tuner("universal", SPACE, direction="minimize")
    for _ in range(3):
        tuner.tell(tuner.ask(), infeasible=True)
    for _ in range(8):
        trial = tuner.ask()
        if trial.hyperparameters["lr"] > 1e-3:
            tuner.tell(trial, infeasible=True)
        else:
            tuner.tell(trial, error(dict(trial.hyperparameters)))
    assert sum(each.status == "done" for each in tuner.trials[-4:]) >= 3


@pytest.mark.parametrize("batch", ["thompson_sampling", "local_penalization"])
def test_running_trials_are_not_asked_for_again(batch: str) -> None:
    tuner = Tuner("universal", SPACE, direction="minimize", batch=batch)
    asked = [tuner.ask().hyperparameters for _ in range(3)]
    assert len({tuple(each.values()) for each in asked}) == 3


def test_inactive_parameters_are_absent() -> None:
    space = SearchSpace(
        (
            Choice("optimizer", ("adam", "sgd")),
            Parameter("momentum", 0.0, 0.99, "log1m", condition=Condition("optimizer", ("sgd",))),
        )
    )
    tuner = Tuner("universal", space, direction="minimize")
    for number in range(6):
        trial = tuner.ask()
        assert ("momentum" in trial.hyperparameters) == (trial.hyperparameters["optimizer"] == "sgd")
        tuner.tell(trial, 1.0 / (1 + number))


def test_a_run_goes_on_with_the_same_space_only(tmp_path: Any) -> None:
    storage = f"sqlite:///{tmp_path / 'runs.db'}"
    tuner = Tuner("universal", SPACE, storage, direction="minimize")
    tuner.tell(tuner.ask(), 0.5)
    again = Tuner("universal", SPACE, storage, direction="minimize")
    assert len(again.trials) == 1
    with pytest.raises(VersionConflictError):
        Tuner("universal", {**SPACE, "depth": (1, 5)}, storage, direction="minimize")


@pytest.mark.parametrize(
    ("prior", "space", "direction"),
    [
        ("universal", SPACE, None),
        ("universal", SPACE, "down"),
        ("universal", None, "minimize"),
        ("universal", {}, "minimize"),
        ("universal", {"act": ["relu", 3]}, "minimize"),
        ("universal", {"lr": "wide"}, "minimize"),
        ("universe", SPACE, "minimize"),
    ],
)
def test_what_cannot_be_tuned_is_refused(prior: Any, space: Any, direction: str | None) -> None:
    if space == {"lr": "wide"}:
        # A text alone is a constant.
        assert Tuner(prior, {**SPACE, **space}, direction=direction).space["lr"].choices == ("wide",)
        return
    with pytest.raises(NotAvailableError if prior == "universe" else InvalidInputError):
        Tuner(prior, space, direction=direction)


def test_a_sampler_takes_the_universal_prior() -> None:
    space, distributions = whole_space(SPACE)
    sampler = HyperBOSampler(universal_prior(space, "minimize"), search_space=distributions, seed=0)
    study = optuna.create_study(sampler=sampler)
    trial = study.ask(distributions)
    assert trial.params.keys() == SPACE.keys()
    with pytest.raises(InvalidInputError):
        HyperBOSampler("universal")


def test_a_prior_is_extended_to_what_it_does_not_know() -> None:
    prior = hyperbo.load_prior("pd1-mini/h-ekl")
    fixed = {"power": 1.0, "decay_steps_factor": 0.9, "momentum": 0.9}
    tuner = Tuner(prior, {**fixed, "width": IntDistribution(8, 512, log=True)}, seed=0)
    widths = []
    for _ in range(12):
        trial = tuner.ask()
        widths.append(trial.hyperparameters["width"])
        off = abs(math.log10(trial.hyperparameters["learning_rate"]) + 1.5)
        tuner.tell(trial, 0.02 + 0.02 * off + 0.1 * abs(math.log2(widths[-1] / 128.0)))
    assert all(isinstance(each, int) and 8 <= each <= 512 for each in widths)
    # Half of random widths are more than a factor of 4 away.
    assert np.mean([64 <= each <= 256 for each in widths[-5:]]) >= 0.6
    assert tuner.best is not None
    assert 90 <= tuner.best.hyperparameters["width"] <= 180


def test_ranges_choices_and_distributions_make_a_space() -> None:
    space, distributions = whole_space(
        {
            "rate": (1e-4, 1.0),
            "share": (0.1, 0.9),
            "units": (8, 2048),
            "layers": (1, 4),
            "batch": [64, 16, 32],
            "nesterov": [True, False],
            "act": ["relu", "tanh", "gelu"],
            "seed": 3,
            "steps": IntDistribution(10, 100, step=10),
            "decay": FloatDistribution(1e-8, 1.0, log=True),
        }
    )
    assert [each.summary for each in space.parameters] == [
        "0.0001 to 1, log",
        "0.1 to 0.9, linear",
        "8 to 2048, log, whole numbers",
        "1 to 4, linear, whole numbers",
        "one of 16, 32, 64, in this order",
        "one of False, True",
        "one of 'relu', 'tanh', 'gelu'",
        "always 3",
        "10 to 100, linear, whole numbers",
        "1e-08 to 1, log",
    ]
    assert distributions["steps"] == IntDistribution(10, 100, step=10)


def test_choices_of_several_types_make_no_parameter() -> None:
    assert new_parameter("mixed", CategoricalDistribution(["a", 1])) is None
    assert new_parameter("none", CategoricalDistribution([None, "a"])) is None


def test_the_shipped_prior_says_what_it_was_learned_from() -> None:
    path = SHIPPED / "universal.json"
    learned = read_hyperprior(path)
    assert path.stat().st_size < 40_000
    assert {"pd1/mini:2.0.0", "trials/taskset:1.0.0", "hpob/4796:1.0.0"} <= {
        each.name for each in learned.sources
    }
    assert all(len(each.sha256) == 64 and each.tasks > 0 for each in learned.sources)
    rate = learned.groups["number/learning_rate"]
    assert rate.effect_mean[1] < learned.groups["number"].effect_mean[1] < 0.0
