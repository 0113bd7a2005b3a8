"""What a prior speaks, for loops of one's own: equal to what the tuner gives it."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from prior_files import make_prior

from hyperbo import load_prior
from hyperbo.bayesopt.history import History, conditioned_values, padded
from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.export import inputs_of, points_of, values_of
from hyperbo.priors.file import Prior

OBJECTIVES = ([0.3], [0.3, 0.2, np.nan, 0.7], [0.1, 0.1], [np.nan, 0.4, 0.02, 0.9, np.nan])


@double_precision
def seen_by_the_tuner(prior: Prior, objective: list[float]) -> np.ndarray:
    y = output_warping(prior.description.output_warping).warp(np.array(objective))
    nowhere = np.zeros((0, prior.description.search_space.dimension))
    history = History(np.zeros((len(y), nowhere.shape[1])), y, nowhere)
    gp = jax.tree.map(jnp.asarray, prior.gp)
    values = conditioned_values(gp, padded(history, len(y)), prior.description.is_mapped)
    return np.asarray(values)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", [load_prior("pd1-mini/h-ekl"), make_prior()], ids=["mapped", "unmapped"])
def test_values_are_those_that_the_tuner_conditions_on(prior: Prior, objective: list[float]) -> None:
    np.testing.assert_allclose(values_of(prior, objective), seen_by_the_tuner(prior, objective), rtol=1e-14)


def test_hyperparameters_come_back_with_integers_levels_and_what_is_active() -> None:
    prior = make_prior()
    mixed = SearchSpace(
        (
            Parameter("rate", 1e-4, 1.0, "log"),
            Parameter("layers", 1, 4, integer=True),
            Choice("optimizer", ("adam", "sgd", "lion")),
        )
    )
    mixed = replace(prior, description=replace(prior.description, search_space=mixed))
    points = [
        {"rate": 0.01, "layers": 3, "optimizer": "sgd"},
        {"rate": 1.0, "layers": 1, "optimizer": "lion"},
    ]
    x = inputs_of(mixed, points)
    assert x[:, 2:].tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert points_of(mixed, x - 1e-3 * (x > 0.5)) == [
        {**points[0], "rate": pytest.approx(0.01)},
        {**points[1], "rate": pytest.approx(1.0, rel=0.01)},
    ]


@pytest.mark.parametrize(
    ("objective", "said"),
    [([0.2, -0.3], "-0.3"), ([[0.2]], "shape"), ([float("nan")], "no trial")],
)
def test_values_that_are_none_are_refused(objective: list[float], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        values_of(make_prior(), objective)


def test_a_point_of_other_parameters_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="lr"):
        inputs_of(make_prior(), [{"a": 0.1, "b": 0.2, "lr": 0.1}])
