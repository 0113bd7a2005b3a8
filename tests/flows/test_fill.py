from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from flows.fill import fill
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import FSBO, HNLL, STBOH, Decision, Rand
from hyperbo.pretrain import NLLTraining


def test_what_is_not_given_is_the_default_of_its_owner():
    assert fill(HNLL, {}, "file") == HNLL()
    # FSBO is H-NLL with a zero mean: other features leave it so.
    assert fill(FSBO, {"architecture": {"hidden": [8]}}, "file") == FSBO(Architecture((8,), mean="zero"))
    base = HNLL(Architecture((7,)), NLLTraining(500))
    filled = fill(HNLL, {"training": {"points_per_task": 9}}, "file", base)
    assert filled == HNLL(Architecture((7,)), NLLTraining(500, 9))


def test_values_of_every_kind_are_taken():
    table = {
        "architecture": {"hidden": [4, 2], "kernel": "matern32", "noise_variance": 1},
        "decision": {"acquisition": "upper_confidence_bound", "coefficient": 2, "correct_variance": True},
        "training": {"tasks_per_step": 3, "learning_rate": 0.5},
        "refit_iterations": 2,
    }
    assert fill(HNLL, table, "file") == HNLL(
        Architecture((4, 2), kernel="matern32", noise_variance=1.0),
        NLLTraining(tasks_per_step=3, learning_rate=0.5),
        Decision("upper_confidence_bound", 2.0, True),
        2,
    )
    assert fill(STBOH, {"lengthscale": [0.5, 2]}, "file").lengthscale == (0.5, 2.0)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Rand, {"seed": 1}, "file: unknown setting 'seed'; it has no settings"),
        (HNLL, {"trainin": {}}, "file: unknown setting 'trainin'; use architecture, training, "),
        (HNLL, {"training": {"step": 1}}, "file, training: unknown setting 'step'; use steps, "),
        (HNLL, {"training": 5}, "file, training: 5 is not a table; give a table"),
        (HNLL, {"training": {"steps": 5.0}}, "file, training, steps: 5.0 is not a whole number"),
        (HNLL, {"refit_iterations": True}, "file, refit_iterations: True is not a whole number"),
        (HNLL, {"architecture": {"hidden": 8}}, "file, architecture, hidden: 8 is not a list"),
        (HNLL, {"architecture": {"hidden": ["8"]}}, r"hidden\[0\]: '8' is not a whole number"),
        (HNLL, {"decision": {"coefficient": "3"}}, "file, decision, coefficient: '3' is not a number"),
        (STBOH, {"lengthscale": [1.0]}, "file, lengthscale: .* is not a list of 2"),
        (HNLL, {"decision": {"acquisition": "ei"}}, "file, decision.*'ei'.*expected_improvement"),
        (HNLL, {"training": {"steps": 750}}, "file, training: NLLTraining: steps = 750 is no multiple"),
        (HNLL, {"refit_iterations": -1}, "file: .*refit_iterations = -1 is negative"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(kind, values, message):
    with pytest.raises(InvalidInputError, match=message):
        fill(kind, values, "file")


@dataclass(frozen=True)
class _Own:
    needed: int
    optional: float | None = 2.0
    computed: int = field(init=False, default=0)


def test_a_field_without_a_default_must_be_given():
    assert fill(_Own, {"needed": 1, "optional": 3}, "file") == _Own(1, 3.0)
    with pytest.raises(InvalidInputError, match="file: needed is missing; give it"):
        fill(_Own, {}, "file")
    with pytest.raises(InvalidInputError, match="unknown setting 'computed'; use needed, optional"):
        fill(_Own, {"needed": 1, "computed": 2}, "file")
