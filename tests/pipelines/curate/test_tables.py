from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that
from beam_checks import pipeline, raw_file
from hyperbo_pipelines.curate.build import WarpedMetric
from hyperbo_pipelines.curate.tables import warp_table
from hyperbo_pipelines.pd1.layout import pd1_layout
from hyperbo_pipelines.pd1.parse import parse_trial
from synthetic_pd1 import rows

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError

OBJECTIVE = "best_valid/error_rate"


def table(*changes: dict[str, Any]) -> pa.Table:
    base = rows("matched", 1, inputs=1)[0] | {"status": "done"}
    content = [json.dumps(base | change).encode() for change in changes]
    file = raw_file(Path("x.jsonl"))
    trials = [parse_trial(line, file, 1, PD1_SEARCH_SPACE, "test") for line in content]
    return pd1_layout(curves=True).raw_table(trials)


def warp(*changes: dict[str, Any]) -> dict[str, list[Any]]:
    return warp_table(table(*changes), PD1_SEARCH_SPACE, OBJECTIVE, "negative_log").to_pydict()


def test_x_by_the_declared_bounds_and_y_by_the_formula() -> None:
    warped = warp(
        {
            "hps.lr_hparams.initial_value": 0.02,
            "hps.lr_hparams.power": 0.7,
            "hps.opt_hparams.momentum": 0.93,
            "hps.lr_hparams.decay_steps_factor": 0.2,
            OBJECTIVE: 0.125,
        }
    )
    expected = [
        (math.log(0.02) - math.log(1e-5)) / (math.log(10) - math.log(1e-5)),
        (0.7 - 0.1) / 1.9,
        # 1 - beta runs from 1e-3 to 1 in logs; x increases with beta.
        math.log(1 - 0.93) / math.log(1e-3),
        (0.2 - 0.01) / 0.98,
    ]
    x = [warped[f"x.{name}"][0] for name in PD1_SEARCH_SPACE.names]
    np.testing.assert_allclose(x, expected, rtol=1e-13)
    np.testing.assert_allclose(warped["y"], [-math.log(0.125 + 1e-10)], rtol=1e-14)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "diverged", OBJECTIVE: 0.25},
        {"status": "infeasible", OBJECTIVE: 0.25},
        {OBJECTIVE: None},
        {OBJECTIVE: float("inf")},
    ],
    ids=["diverged", "infeasible", "null", "infinite"],
)
def test_y_is_nan_without_a_value_that_counts_and_the_facts_stay(changes: dict[str, Any]) -> None:
    raw, good = table(changes, {OBJECTIVE: 0.5}), warp(changes, {OBJECTIVE: 0.5})
    assert math.isnan(good["y"][0])
    assert good["y"][1] == pytest.approx(math.log(2), rel=1e-9)
    for name, values in raw.to_pydict().items():
        assert repr(good[name]) == repr(values)


def test_the_transform_warps_every_table() -> None:
    made = [table({OBJECTIVE: value}) for value in (0.5, 0.25, None)]
    expected = [warp({OBJECTIVE: value}) for value in (0.5, 0.25, None)]

    def check(tables: list[pa.Table]) -> None:
        assert sorted(repr(t.to_pydict()) for t in tables) == sorted(map(repr, expected))

    with pipeline() as p:
        warped = p | beam.Create(made) | beam.Map(warp_table, PD1_SEARCH_SPACE, OBJECTIVE, "negative_log")
        assert_that(warped, check)


def test_an_unknown_warping_fails_before_any_worker_runs() -> None:
    with pytest.raises(InvalidInputError, match="unknown output warping 'cube'"):
        WarpedMetric(OBJECTIVE, "cube")
