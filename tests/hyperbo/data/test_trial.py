from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.trial import Trial, validate
from hyperbo.errors import InvalidInputError

SPACE = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"), Parameter("power", 0.0, 2.0)))
VALUES = {"rate": 0.01, "power": 0.5}
TRIAL = Trial(
    task="digits-cnn-32",
    task_dataset="digits",
    model="cnn",
    batch_size=32,
    trial_id="digits-cnn-32/7",
    split="matched",
    phase=0,
    origin="collected",
    source="raw.jsonl:8",
    status="done",
    hyperparameters=VALUES,
    input_id=SPACE.input_id(VALUES),
    metrics={"best_valid/error_rate": 0.1},
    curves={"global_step": (1.0, 2.0), "valid/error_rate": (0.3, 0.1)},
)


def test_a_good_trial_passes() -> None:
    validate(TRIAL, SPACE)
    validate(replace(TRIAL, status="diverged", metrics={"best_valid/error_rate": math.nan}), SPACE)
    validate(replace(TRIAL, hyperparameters={"rate": np.float64(0.01), "power": np.float64(0.5)}), SPACE)
    # The order in which hyperparameters were recorded does not matter.
    validate(replace(TRIAL, hyperparameters=dict(reversed(VALUES.items()))), SPACE)


def test_a_value_a_rounding_outside_of_its_range_passes() -> None:
    values = {"rate": 1.0000002, "power": 0.5}
    validate(replace(TRIAL, hyperparameters=values, input_id=SPACE.input_id(values)), SPACE)


def test_diverged_is_the_status() -> None:
    assert [replace(TRIAL, status=status).diverged for status in ("done", "diverged", "infeasible")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": ""}, "task is empty"),
        ({"task_dataset": ""}, "task_dataset is empty"),
        ({"trial_id": ""}, "trial_id is empty"),
        ({"hyperparameters": {"rate": 0.01}}, "power has no value"),
        ({"hyperparameters": VALUES | {"beta": 0.9}}, "unknown hyperparameters: beta"),
        ({"hyperparameters": VALUES | {"rate": 2.0}}, r"rate = 2.0 is outside \[0.0001, 1.0\]"),
        ({"hyperparameters": VALUES | {"power": math.nan}}, r"power = nan is outside \[0.0, 2.0\]"),
        ({"hyperparameters": VALUES | {"power": -math.inf}}, "power = -inf is outside"),
        ({"hyperparameters": VALUES | {"rate": 0.02}}, "input_id does not belong to the hyperparameters"),
        ({"curves": {"a": (1.0,), "b": ()}}, r"curves differ in length: \{'a': 1, 'b': 0\}"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^raw.jsonl:8: {message}"):
        validate(replace(TRIAL, **changes), SPACE)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("status", "finished", "status is 'finished'; use one of done, diverged, infeasible"),
        ("hyperparameters", VALUES | {"rate": "high"}, "rate = 'high' is not a number; write a number"),
    ],
)
def test_values_of_another_type_than_annotated(field: str, value: Any, message: str) -> None:
    # The run-time checks of the tests would refuse them earlier; a reader of files meets them here.
    trial = replace(TRIAL)
    object.__setattr__(trial, field, value)
    with pytest.raises(InvalidInputError, match=rf"^raw.jsonl:8: {message}"):
        validate(trial, SPACE)
