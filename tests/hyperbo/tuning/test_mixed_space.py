"""Tuning over integers, ordinals, choices, booleans, constants and conditional parameters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from tuning_priors import prior_over

from hyperbo.data import Choice, Condition, Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.tuning import HyperBOSampler, Region, Tuner
from hyperbo.tuning.optuna.distributions import never_active, space_of
from hyperbo.tuning.region import coordinates

SPACE = SearchSpace(
    (
        Parameter("rate", 1e-4, 1.0, "log"),
        Parameter("depth", 1, 4, integer=True),
        Choice("activation", ("relu", "tanh", "gelu")),
        Choice("optimizer", ("sgd", "adam")),
        Parameter("momentum", 0.0, 0.99, condition=Condition("optimizer", ("sgd",))),
        Choice("nesterov", (False, True), condition=Condition("momentum", lower=0.5)),
        Choice("batch", (32, 64, 128), ordered=True),
        Choice("epochs", (10,)),
    )
)
PRIOR = prior_over(SPACE)


def loss(values):
    """Best: a rate of 0.01, a depth of 3, gelu, adam; a batch of 64."""
    apart = abs(np.log10(values["rate"]) + 2.0) / 4 + abs(values["depth"] - 3) / 4
    return (
        apart
        + (values["activation"] != "gelu") / 4
        + (values["optimizer"] == "sgd") / 4
        + values["batch"] / 640
    )


def check(values):
    """A point of the space, each value in its type and each parameter there where it is active."""
    assert SPACE.codes([values]).shape == (1, 8)
    active = {"rate", "depth", "activation", "optimizer", "batch", "epochs"}
    if values["optimizer"] == "sgd":
        active |= {"momentum"} | ({"nesterov"} if values["momentum"] >= 0.5 else set())
    assert values.keys() == active
    assert type(values["depth"]) is int
    assert type(values.get("nesterov", True)) is bool
    assert values["epochs"] == 10


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("local_penalization", "thompson_sampling")]


@pytest.mark.parametrize("batch", ["kriging_believer", *SLOW])
def test_proposals_are_points_of_the_space_and_get_better(batch):
    tuner = Tuner(PRIOR, batch=batch)
    running = None
    for _ in range(8):
        trial = tuner.ask()
        check(trial.hyperparameters)
        if running is not None:  # Told while the next one runs.
            tuner.tell(running, loss(running.hyperparameters))
        running = trial
    losses = [trial.objective for trial in tuner.trials[:-1]]
    assert min(losses) < np.mean([loss(each) for each in drawn(64)])
    seen = [tuple(sorted(trial.hyperparameters.items())) for trial in tuner.trials]
    assert len(set(seen)) == len(seen)


def drawn(count):
    random = np.random.default_rng(0).uniform(size=(count, SPACE.dimension))
    return SPACE.values(SPACE.from_unit(random))


def test_a_space_of_levels_and_integers_is_enumerated():
    fixed = {"rate": 0.01, "optimizer": "adam", "batch": 64}
    tuner = Tuner(PRIOR, space=fixed)
    found = set()
    for _ in range(12):
        trial = tuner.ask()
        tuner.tell(trial, loss(trial.hyperparameters))
        found.add((trial.hyperparameters["depth"], trial.hyperparameters["activation"]))
    # A conditional parameter that is never active makes no other point.
    assert found == set(itertools.product((1, 2, 3, 4), ("relu", "tanh", "gelu")))


def test_the_best_point_is_found_by_local_search():
    """Beside every neighbour, the proposal is best: no level and no integer next to it scores higher."""
    region = Region.of(SPACE, {})
    codes = region.codes(np.random.default_rng(0).uniform(size=(5, 8)))
    for row in codes:
        (x,) = coordinates(SPACE, row[None])
        around = region.around(row, x)
        assert np.isfinite(coordinates(SPACE, around)).all()
        changed = {int(place) for near in around for place in np.flatnonzero(near != row)}
        # Of all discrete parameters, those without a condition at least.
        assert changed >= {1, 2, 3, 6}


def test_ranges_and_levels_are_taken_from_the_prior_or_narrowed():
    tuner = Tuner(PRIOR, space={"depth": (1, 2), "activation": ["relu", "gelu"], "batch": (32, 64)})
    assert tuner.space["depth"] == IntDistribution(1, 2)
    assert tuner.space["activation"] == CategoricalDistribution(["relu", "gelu"])
    assert tuner.space["batch"] == CategoricalDistribution([32, 64])
    for _ in range(3):
        trial = tuner.ask()
        assert trial.hyperparameters["depth"] in (1, 2)
        assert trial.hyperparameters["activation"] in ("relu", "gelu")
        tuner.tell(trial, loss(trial.hyperparameters))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            {"activation": ["relu", "swish"]},
            "parameter 'activation': the prior knows no level 'swish' of activation",
        ),
        ({"depth": (1.5, 4)}, "parameter 'depth': .* a bound of an integer is no whole number"),
        ({"depth": [1.5, 2.5]}, "parameter 'depth': .* of an integer; give whole numbers"),
        ({"batch": (200, 300)}, "no level of batch is in"),
        ({"optimizer": True}, "the prior knows no level True of optimizer"),
    ],
)
def test_what_the_prior_cannot_place_is_said(space, message):
    with pytest.raises(InvalidInputError, match=message):
        Tuner(PRIOR, space=space)


def test_added_trials_need_their_active_parameters_only():
    tuner = Tuner(PRIOR)
    values = {"rate": 0.1, "depth": 2, "activation": "relu", "optimizer": "adam", "batch": 32, "epochs": 10}
    added = tuner.add(values, 0.5)
    assert added.hyperparameters == values
    for depth in (True, "2", 10**400):
        with pytest.raises(InvalidInputError, match=r"depth = .* is not a number"):
            tuner.add(values | {"depth": depth}, 0.5)
    with pytest.raises(InvalidInputError, match="momentum missing"):
        tuner.add(values | {"optimizer": "sgd"}, 0.5)
    assert "momentum" not in tuner.add(values | {"momentum": 0.9}, 0.4).hyperparameters


def test_the_sampler_suggests_levels_and_integers():
    optuna = pytest.importorskip("optuna")

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        depth, activation = (
            trial.suggest_int("depth", 1, 4),
            trial.suggest_categorical("activation", ["gelu", "relu"]),
        )
        optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam"])
        momentum = trial.suggest_float("momentum", 0.0, 0.9) if optimizer == "sgd" else 0.0
        return abs(np.log10(rate) + 2) + depth + (activation == "relu") + momentum

    study = optuna.create_study(sampler=HyperBOSampler(PRIOR, seed=0, fixed={"batch": 64, "epochs": 10}))
    study.optimize(objective, n_trials=5)
    assert all(trial.params["activation"] in ("gelu", "relu") for trial in study.trials)


def test_trials_at_the_same_time_are_apart():
    tuner = Tuner(PRIOR)
    for values in drawn(4):
        tuner.add(values, loss(values))
    space = tuner.prior.description.search_space
    x = space.to_unit(space.codes([tuner.ask().hyperparameters for _ in range(4)]))
    apart = np.abs(x[:, None] - x[None]).max(axis=2)
    assert apart[~np.eye(4, dtype=bool)].min() >= 0.05


def test_levels_of_other_types_are_those_that_a_history_recorded_as_texts():
    space = SearchSpace((Choice("schedule", ("null", "cosine", "3", "true")), Parameter("rate", 0.0, 1.0)))
    tuner = Tuner(prior_over(space), space={"schedule": [None, 3, True]})
    asked = [tuner.ask() for _ in range(6)]
    assert {type(trial.hyperparameters["schedule"]) for trial in asked} <= {type(None), int, bool}
    tuner.tell(asked[0], 0.5)
    assert tuner.add({"schedule": None, "rate": 0.5}, 0.25).hyperparameters["schedule"] is None
    with pytest.raises(InvalidInputError, match="knows no level 4 of schedule"):
        Tuner(prior_over(space), space={"schedule": [None, 4]})


def test_what_a_held_parent_excludes_is_never_active():
    held = space_of(SPACE, {"optimizer": "adam"})
    assert never_active(SPACE, held) == {"momentum"}
    assert never_active(SPACE, space_of(SPACE, {"optimizer": "sgd", "momentum": 0.9})) == set()
