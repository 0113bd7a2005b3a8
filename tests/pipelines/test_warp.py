from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from beam_checks import expect, pipeline, raw_file
from synthetic_pd1 import rows

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import PD1_SEARCH_SPACE
from pipelines.parse import parse_trial
from pipelines.records import Record
from pipelines.warp import WarpRecords, warp_record

OBJECTIVE = "best_valid/error_rate"


def record(**changes: Any) -> Record:
    row = rows("matched", 1, inputs=1)[0] | {"status": "done"} | changes
    return Record(
        parse_trial(json.dumps(row).encode(), raw_file(Path("x.jsonl")), 1, PD1_SEARCH_SPACE, "test")
    )


def warp(made: Record) -> Record:
    return warp_record(made, PD1_SEARCH_SPACE, OBJECTIVE, "negative_log")


def test_x_by_the_declared_bounds_and_y_by_the_formula() -> None:
    made = record(
        **{
            "hps.lr_hparams.initial_value": 0.02,
            "hps.lr_hparams.power": 0.7,
            "hps.opt_hparams.momentum": 0.93,
            "hps.lr_hparams.decay_steps_factor": 0.2,
            OBJECTIVE: 0.125,
        }
    )
    warped = warp(made)
    expected = [
        (math.log(0.02) - math.log(1e-5)) / (math.log(10) - math.log(1e-5)),
        (0.7 - 0.1) / 1.9,
        # 1 - beta runs from 1e-3 to 1 in logs; x increases with beta.
        math.log(1 - 0.93) / math.log(1e-3),
        (0.2 - 0.01) / 0.98,
    ]
    np.testing.assert_allclose(warped.x, expected, rtol=1e-13)
    np.testing.assert_allclose(warped.y, -math.log(0.125 + 1e-10), rtol=1e-14)
    assert warped.trial == made.trial


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "diverged", OBJECTIVE: 0.25},
        {"status": "infeasible", OBJECTIVE: 0.25},
        {OBJECTIVE: None},
        {OBJECTIVE: float("inf")},
    ],
)
def test_y_is_nan_without_a_value_that_counts_and_the_facts_stay(changes: dict[str, Any]) -> None:
    made = record(**changes)
    warped = warp(made)
    assert math.isnan(warped.y)
    assert repr(warped.trial) == repr(made.trial)
    assert all(0 <= value <= 1 for value in warped.x)


def test_zero_error_is_finite() -> None:
    assert warp(record(**{OBJECTIVE: 0})).y == pytest.approx(10 * math.log(10), rel=1e-15)


def test_the_transform_warps_every_record() -> None:
    made = [record(**{OBJECTIVE: value}) for value in (0.5, 0.25, None)]
    with pipeline() as p:
        expect(
            p | beam.Create(made) | WarpRecords(PD1_SEARCH_SPACE, OBJECTIVE, "negative_log"),
            [warp(r) for r in made],
        )


def test_an_unknown_warping_fails_before_any_worker_runs() -> None:
    with pytest.raises(InvalidInputError, match="unknown output warping 'cube'"):
        WarpRecords(PD1_SEARCH_SPACE, OBJECTIVE, "cube")
