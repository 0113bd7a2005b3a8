"""A live objective: the collected trial again, divergence as infeasibility, and rows that can be curated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hyperbo_pipelines.collect.blocks import TaskBlocks
from hyperbo_pipelines.collect.objective import METRIC, PresetTask
from hyperbo_pipelines.collect.plan import TrialBlock, block_points
from hyperbo_pipelines.collect.preset import load_preset
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.pd1.parse import parse_trial

from hyperbo.bayesopt.journal import RunName
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError

TINY = load_preset("tiny")
STUDY = "breast_cancer_mlp_10"
DIVERGING = [10.0, 0.1, 0.999, 0.99]


@pytest.fixture(scope="module")
def task() -> PresetTask:
    return PresetTask(TINY, STUDY, TINY.block_size, "online-5f3a")


def runs(count: int) -> list[RunName]:
    return [RunName("H-NLL", STUDY, seed) for seed in range(count)]


def test_a_collected_point_has_the_collected_result(task: PresetTask, tmp_path: Path) -> None:
    block = TrialBlock(1, "matched", 0, 0, 4)
    points = block_points(TINY, block)
    collected = TaskBlocks(TINY, 1, tmp_path).train(block).rows
    found = task.run_trials(points, runs(4), 7)
    for row, expected in zip(found.rows, collected, strict=True):
        assert row.pop("origin") == row["trial_dir"].removeprefix(f"tiny-1.0.0/{STUDY}/")[:-6]
        differing = {name for name in row | expected if row.get(name) != expected.get(name)}
        assert differing == {"trial_dir"}
    assert found.rows[2]["trial_dir"] == f"tiny-1.0.0/{STUDY}/online-5f3a/H-NLL/seed2/00007"


def test_any_number_of_points_and_those_that_diverge_are_infeasible(task: PresetTask) -> None:
    unit = np.random.default_rng(0).random((5, 4)) * 0.4
    points = np.concatenate([PD1_SEARCH_SPACE.from_unit(unit), [DIVERGING]])
    found = task.run_trials(points, runs(6), 1)
    assert np.isnan(found.objective).tolist() == [False] * 5 + [True]
    assert [row["status"] for row in found.rows] == ["done"] * 5 + ["diverged"]
    assert found.objective[:5].tolist() == [row[METRIC] for row in found.rows[:5]]
    for i in (1, 4):
        alone = task.run_trials(points[i : i + 1], runs(6)[i : i + 1], 1)
        assert alone.rows == [found.rows[i]]


def test_its_rows_are_trials_of_the_raw_layout(task: PresetTask) -> None:
    (row,) = task.run_trials(np.array([[0.02, 1.0, 0.9, 0.5]]), runs(1), 3).rows
    file = RawFile(Path("trials.jsonl.gz"), "unmatched", 0, "", 0, 1)
    trial = parse_trial(json.dumps(row).encode(), file, 1, PD1_SEARCH_SPACE, row["origin"])
    assert (trial.task, trial.origin) == ("breast_cancer-mlp-10", "online-5f3a/H-NLL/seed0")
    assert trial.task_dataset == task.dataset_name
    assert trial.hyperparameters == dict(zip(PD1_SEARCH_SPACE.names, [0.02, 1.0, 0.9, 0.5], strict=True))


def test_an_unknown_task_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match="preset 'tiny': no task 'digits'; use digits_simple_c"):
        PresetTask(TINY, "digits", 1, "online")
