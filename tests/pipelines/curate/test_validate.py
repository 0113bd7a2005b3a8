from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from beam_checks import expect, pipeline, raw_file
from hyperbo_pipelines.curate.build import validate_trials
from hyperbo_pipelines.curate.elements import Reject
from hyperbo_pipelines.pd1.layout import ERROR_RATES
from hyperbo_pipelines.pd1.parse import parse_trial
from synthetic_pd1 import rows

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.data.trial import Trial

FILE = raw_file(Path("x.jsonl"))


def trial(line: int, **changes: Any) -> Trial:
    row = rows("matched", 1, inputs=1)[0] | changes
    return parse_trial(json.dumps(row).encode(), FILE, line, PD1_SEARCH_SPACE, "test")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hps.lr_hparams.initial_value": 10.5}, "learning_rate = 10.5 is outside [1e-05, 10.0]"),
        ({"hps.opt_hparams.momentum": -0.1}, "momentum = -0.1 is outside [0.0, 0.999]"),
        ({"hps.lr_hparams.power": float("inf")}, "power = inf is outside [0.1, 2.0]"),
        ({"hps.lr_hparams.power": float("nan")}, "power = nan is outside [0.1, 2.0]"),
        ({"epoch": [1.0]}, None),
        ({"best_valid/error_rate": -0.25}, "best_valid/error_rate = -0.25 is outside [0, 1]"),
        ({"best_train/error_rate": 1.5}, "best_train/error_rate = 1.5 is outside [0, 1]"),
    ],
)
def test_a_trial_that_breaks_a_rule_is_rejected_and_others_pass(
    changes: dict[str, Any], reason: str | None
) -> None:
    good, bad = trial(1), trial(2, **changes)
    expected = reason or f"curves differ in length: { ({n: len(c) for n, c in bad.curves.items()}) }"
    with pipeline() as p:
        trials, rejects = validate_trials(p | beam.Create([good, bad]), PD1_SEARCH_SPACE, ERROR_RATES)
        expect(trials, [good], "trials")
        expect(rejects, [Reject("x.jsonl", 2, expected)], "rejects")


def test_bounds_themselves_and_absent_values_are_valid() -> None:
    bounds = {
        "hps.lr_hparams.initial_value": 1e-5,
        "hps.lr_hparams.power": 2.0,
        "hps.opt_hparams.momentum": 0.999,
        "hps.lr_hparams.decay_steps_factor": 0.01,
        "best_valid/error_rate": None,
    }
    good = trial(1, **bounds)
    with pipeline() as p:
        trials, rejects = validate_trials(p | beam.Create([good]), PD1_SEARCH_SPACE, ERROR_RATES)
        expect(trials, [good], "trials")
        expect(rejects, [], "rejects")
