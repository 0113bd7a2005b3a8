from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, make_dataclass
from datetime import date
from math import inf

import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import FSBO, HNLL, METHODS, STBOH, AcquisitionDecision, Rand
from hyperbo.pretrain import NLLTraining
from hyperbo.storage.validation import validated


def test_what_is_not_given_is_the_default_of_its_owner():
    assert validated(HNLL, {}, "file") == HNLL()
    # FSBO is H-NLL with a zero mean: other features leave it so.
    assert validated(FSBO, {"architecture": {"hidden": [8]}}, "file", default=FSBO()) == FSBO(
        Architecture((8,), mean="zero")
    )
    base = HNLL(Architecture((7,)), NLLTraining(500))
    filled = validated(HNLL, {"training": {"points_per_task": 9}}, "file", default=base)
    assert filled == HNLL(Architecture((7,)), NLLTraining(500, 9))


@pytest.mark.parametrize("name", METHODS)
def test_the_settings_of_a_method_survive_json(name):
    method = METHODS[name]()
    again = validated(METHODS[name], json.loads(json.dumps(asdict(method))), "file")
    assert again == method
    # Equal is not enough: identities of runs are hashes of this text, where 1 is not 1.0.
    assert json.dumps(asdict(again)) == json.dumps(asdict(method))


def test_values_of_every_kind_are_taken():
    table = {
        "architecture": {"hidden": [4, 2], "kernel": "matern32", "noise_variance": 1},
        "decision": {"acquisition": "upper_confidence_bound", "coefficient": 2, "correct_variance": True},
        "training": {"tasks_per_step": 3, "learning_rate": 0.5},
        "refit_iterations": 2,
    }
    assert validated(HNLL, table, "file") == HNLL(
        Architecture((4, 2), kernel="matern32", noise_variance=1.0),
        NLLTraining(tasks_per_step=3, learning_rate=0.5),
        AcquisitionDecision("upper_confidence_bound", 2.0, True),
        2,
    )
    assert validated(STBOH, {"lengthscale": [0.5, 2]}, "file").lengthscale == (0.5, 2.0)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Rand, {"seed": 1}, "unknown key 'seed'; leave it out"),
        (HNLL, {"trainin": {}}, r"unknown key 'trainin'; did you mean 'training'"),
        (HNLL, {"training": {"step": 1}}, r"training: unknown key 'step'; did you mean 'steps'\?"),
        (HNLL, {"training": 5}, "training: 5 is not a table"),
        (HNLL, {"training": {"steps": 5.0}}, r"training\.steps: 5.0 is not a whole number"),
        (HNLL, {"refit_iterations": True}, "refit_iterations: True is not a whole number"),
        (HNLL, {"refit_iterations": "1"}, "refit_iterations: '1' is not a whole number"),
        (HNLL, {"architecture": {"hidden": 8}}, r"architecture\.hidden: 8 is not a list"),
        (HNLL, {"architecture": {"hidden": ["8"]}}, r"architecture\.hidden\[0\]: '8' is not a whole number"),
        (HNLL, {"decision": {"coefficient": "3"}}, r"decision\.coefficient: '3' is not a number"),
        (HNLL, {"decision": {"coefficient": inf}}, r"decision\.coefficient: inf is not a finite number"),
        (HNLL, {"decision": {"correct_variance": 1}}, r"decision\.correct_variance: 1 is not true or false"),
        (HNLL, {"architecture": {"kernel": date(2026, 1, 1)}}, r"architecture\.kernel: .* is not text"),
        (STBOH, {"lengthscale": [1.0]}, r"lengthscale\[1\]: the field is missing"),
        (STBOH, {"lengthscale": [1.0, 2.0, 3.0]}, "lengthscale: .* is refused"),
        (HNLL, {"decision": {"acquisition": "ei"}}, "decision: .*'ei'.*expected_improvement"),
        (HNLL, {"training": {"steps": 750}}, "training: NLLTraining: steps = 750 is no multiple"),
        (HNLL, {"refit_iterations": -1}, ".*refit_iterations = -1 is negative"),
        (HNLL, {"a\x1b[2Jb": 1}, r"unknown key 'a\\x1b\[2Jb'"),
        (HNLL, {"refit_iterations": "x" * 10_000}, "refit_iterations: 'x{50,120}... is not a whole number$"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(kind, values, message):
    with pytest.raises(InvalidInputError, match=f'^file: arms."a b"[.:] ?{message}'):
        validated(kind, values, "file", at=("arms", "a b"), default=kind())


@dataclass(frozen=True)
class _Own:
    needed: int
    optional: float | None = 2.0
    computed: int = field(init=False, default=0)


def test_a_field_without_a_default_must_be_given():
    assert validated(_Own, {"needed": 1, "optional": 3}, "file") == _Own(1, 3.0)
    with pytest.raises(InvalidInputError, match="file: needed: the field is missing"):
        validated(_Own, {}, "file")
    with pytest.raises(InvalidInputError, match="file: unknown key 'computed'; use needed, optional"):
        validated(_Own, {"needed": 1, "computed": 2}, "file")


def test_annotations_that_no_file_can_fill_are_named():
    kind = make_dataclass("Own", [("points", "NotImported")])
    with pytest.raises(InvalidInputError, match="file: the fields of Own cannot be set"):
        validated(kind, {"points": 1}, "file")
