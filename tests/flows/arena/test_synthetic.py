"""Synthetic tasks: every machine makes the same, and they are scored on the functions without noise."""

from __future__ import annotations

import hashlib
import json
import zlib

import numpy as np
import pandas as pd
import pytest
from hyperbo_flows.arena.families import FAMILIES
from hyperbo_flows.arena.protocol import PROTOCOL
from hyperbo_flows.arena.scoring import as_scored
from hyperbo_flows.arena.synthetic import (
    INPUTS,
    NOISE,
    SYNTHETIC,
    TEST_TASKS,
    TRAINING_TASKS,
    build_synthetic,
    noise_free,
    synthetic_rows,
)

from hyperbo.evaluation.records.join import Evaluation

DIVISION = PROTOCOL.division("synthetic")


def test_the_rows_do_not_change():
    rows = list(synthetic_rows())
    assert len(rows) == len(FAMILIES) * (TRAINING_TASKS + TEST_TASKS) * INPUTS
    digest = hashlib.sha256("".join(map(json.dumps, rows)).encode()).hexdigest()
    assert digest == "6b561a790c99d4f2428fb071ce3a26f6dae0050d84fe2ec412157cacca786c1b"


def test_noise_is_that_which_is_told_and_the_value_without_it_is_found_by_trial():
    rows = pd.DataFrame(synthetic_rows())
    clean = (rows["task"] + "/" + rows["trial"].astype(str)).map(noise_free())
    noise = (rows["value"] - clean).groupby(rows["task"]).std()
    assert noise.between(0.7 * NOISE, 1.3 * NOISE).all()
    spread = clean.groupby(rows["task"]).std()
    assert spread.between(0.2, 3.0).all()


def test_tasks_of_a_family_share_inputs_and_are_no_copies_of_each_other():
    rows = pd.DataFrame(synthetic_rows())
    points = rows.groupby("task")[["x1", "x2", "x3"]].apply(lambda each: each.to_numpy().tobytes())
    assert points.nunique() == 1
    values = rows.pivot_table(index="trial", columns="task", values="value")
    between = values.corr().to_numpy()
    assert np.abs(between[np.triu_indices_from(between, 1)]).max() < 0.999


def test_a_classic_function_has_its_known_optimum():
    random = np.random.default_rng(zlib.crc32(b"sphere"))
    x = np.random.default_rng(0).random((4000, 3))
    y = FAMILIES["sphere"](x, random)
    best = x[y.argmax()]
    assert np.abs(best - 0.5).max() < 0.2  # moved by at most a tenth, and found on a grid of points


def test_records_are_scored_by_the_function_without_noise():
    part = DIVISION.parts[0]
    task = "ackley-test-0"
    trials = [f"{task}/{row}" for row in (3, 7, 11)]
    records = pd.DataFrame({"task": task, "trial_id": trials, "y": 0.0, "y_max": 9.0, "y_min": -9.0})
    metadata: dict = {}
    scored = as_scored(part, Evaluation(records, metadata)).records
    clean = noise_free()
    of_task = [value for trial, value in clean.items() if trial.startswith(f"{task}/")]
    assert scored["y"].tolist() == [clean[trial] for trial in trials]
    assert (scored["y_max"].iloc[0], scored["y_min"].iloc[0]) == (max(of_task), min(of_task))
    other = Evaluation(records, metadata)
    assert as_scored(PROTOCOL.division("quick").parts[0], other) is other


@pytest.mark.slow
def test_the_version_has_the_content_hash_of_the_protocol(tmp_path):
    manifest = build_synthetic(tmp_path)
    assert manifest.reference == SYNTHETIC
    assert {part.content_hash for part in DIVISION.parts} == {manifest.content_hash}
    assert build_synthetic(tmp_path).content_hash == manifest.content_hash
