from __future__ import annotations

import math
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from version_folders import OBJECTIVE, record, write_version

import pd1_builder
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError
from pd1_builder.read.preparations import PREPARATIONS, find_preparation

METRIC = f"metrics.{OBJECTIVE}"
TASKS = (
    "digits-mlp-32",
    "lm1b-transformer-2048",
    "uniref50-transformer-128",
    "imagenet-resnet50-512",
    "cifar100-wrn-2048",
)
# The order in which the studies read the four files of the release.
FILES = (("matched", 0), ("matched", 1), ("unmatched", 0), ("unmatched", 1))
Records = list[tuple[str, dict[str, Any]]]


def trials() -> Records:
    """Trials of few inputs, so that most are run in several files; every kind of curve and of divergence."""
    draw = np.random.default_rng(7)
    made: Records = []
    for task in TASKS:
        for split, phase in FILES:
            for number in range(24):
                of_block = split == "matched" and number < 12
                cost = draw.uniform(0, 3000, size=int(draw.integers(0, 6))).tolist()
                errors = draw.uniform(size=len(cost)).tolist()
                for curve in (cost, errors):
                    if curve and draw.uniform() < 0.2:
                        curve[int(draw.integers(len(curve)))] = [math.nan, math.inf][int(draw.integers(2))]
                diverged = draw.uniform() < 0.25
                best = None if diverged and draw.uniform() < 0.5 else draw.uniform()
                fields = {
                    "phase": phase,
                    "status": "diverged" if diverged else "done",
                    "block": f"phase{phase}-block" if of_block else "",
                    "curves.train_cost": cost,
                    "curves.valid/error_rate": errors,
                }
                # The inputs of a block differ; those of other trials may repeat, in one file too.
                a = number / 32 if of_block else int(draw.integers(11, 20)) / 32
                made.append((split, record(task, f"{split}{phase}/{task}/{number:02d}", a, best, **fields)))
    return made


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    splits: dict[str, list[dict[str, Any]]] = {"matched": [], "unmatched": []}
    for split, trial in trials():
        splits[split].append(trial)
    write_version(folder, "pd1/mini:1.0.0", splits)
    return folder


def recorded(trial: dict[str, Any]) -> float | None:
    return None if math.isnan(trial[METRIC]) else trial[METRIC]


def only_done(trial: dict[str, Any]) -> float | None:
    return recorded(trial) if trial["status"] == "done" else None


def best_point(trial: dict[str, Any], limit: float) -> float | None:
    costs = [math.nan if math.isinf(cost) else cost for cost in trial["curves.train_cost"]]
    kept = [
        error
        for cost, error in zip(accumulate(costs), trial["curves.valid/error_rate"], strict=True)
        if cost < limit and math.isfinite(error)
    ]
    return min(kept, default=None)


def last_with_value(values: dict[str, float | None]) -> dict[str, float | None]:
    """Of trials of one task and input, the last one with a value in the order of the files."""
    kept: dict[tuple[str, str], str] = {}
    for file in FILES:
        of_file = [t for split, t in trials() if (split, t["phase"]) == file]
        for trial in sorted(of_file, key=lambda each: each["trial_id"], reverse=True):
            if values[trial["trial_id"]] is not None:
                kept[trial["task"], trial["input_id"]] = trial["trial_id"]
    return {trial_id: values[trial_id] for trial_id in kept.values()}


def mf_prior_bench_values() -> dict[str, float | None]:
    limits = {"lm1b-transformer-2048": 10_000.0, "uniref50-transformer-128": 4_000.0}
    values = {
        trial["trial_id"]: best_point(trial, limits.get(trial["task"], math.inf)) for _, trial in trials()
    }
    for task, quantile in (("imagenet-resnet50-512", 0.95), ("cifar100-wrn-2048", 0.93)):
        largest: dict[str, float] = {}
        for _, trial in trials():
            if trial["task"] == task:
                costs = [math.nan if math.isinf(cost) else cost for cost in trial["curves.train_cost"]]
                for cost in accumulate(costs):
                    if not math.isnan(cost):
                        name = trial["input_id"]
                        largest[name] = max(largest.get(name, -math.inf), cost)
        bound = np.quantile(list(largest.values()), quantile)
        for _, trial in trials():
            if trial["task"] == task and largest.get(trial["input_id"], math.inf) >= bound:
                values[trial["trial_id"]] = None
    return last_with_value(values)


EXPECTED = {
    "observed": {t["trial_id"]: only_done(t) for _, t in trials()},
    "paper": {t["trial_id"]: only_done(t) for _, t in trials()},
    # Of a trial that is infeasible there is no value, but a place in the tasks.
    "online": {t["trial_id"]: only_done(t) for _, t in trials()},
    "syne_tune": {t["trial_id"]: recorded(t) for _, t in trials() if t["phase"] == 1},
    "empirical_gp": last_with_value(
        {t["trial_id"]: 1.0 if recorded(t) is None else recorded(t) for _, t in trials()}
    ),
    "mf_prior_bench": mf_prior_bench_values(),
}


def test_every_preparation_is_checked_here() -> None:
    assert EXPECTED.keys() == PREPARATIONS.keys()


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "online"])
def test_a_preparation_reads_what_its_source_reads(name: str, data_dir: Path) -> None:
    expected = {trial_id: value for trial_id, value in EXPECTED[name].items() if value is not None}
    task_of = {trial["trial_id"]: trial["task"] for _, trial in trials()}
    data = pd1_builder.load("pd1/mini", name, data_dir=data_dir)
    assert data.provenance.preparation == name
    found = {}
    for task in data.tasks:
        for trial_id, objective, y in zip(task.trial_ids, task.objective, task.y, strict=True):
            assert task.name == task_of[trial_id]
            found[trial_id] = float(objective)
            np.testing.assert_allclose(y, -math.log(objective + 1e-10), rtol=1e-14, atol=1e-14)
    assert found == expected


def test_online_maps_each_task_and_keeps_its_infeasible_trials(data_dir: Path) -> None:
    data = pd1_builder.load("pd1/mini", "online", data_dir=data_dir)
    found = [trial_id for task in data.tasks for trial_id in task.trial_ids]
    assert sorted(found) == sorted(EXPECTED["online"])
    for task in data.tasks:
        errors = [EXPECTED["online"][trial_id] for trial_id in task.trial_ids]
        infeasible = np.array([error is None for error in errors])
        assert infeasible.any()
        assert (task.y[infeasible] == -2.0).all()
        assert np.isnan(task.objective[infeasible]).all()
        # The equation of section "Results on the PD1 Online Hyperparameter Tuning Tasks".
        values = np.array([-math.log(error + 1e-10) for error in errors if error is not None])
        raised = np.log1p(np.exp(values - np.median(values)))
        np.testing.assert_allclose(task.y[~infeasible], 4 * raised / raised.max() - 2, rtol=1e-12, atol=1e-12)
    # Nothing is missing where a trial that diverged has a value.
    assert all(np.isfinite(block.y).all() for block in data.blocks)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_dataframe_holds_the_trials_of_the_tasks_as_prepared(name: str, data_dir: Path) -> None:
    data = pd1_builder.load("pd1/mini", name, data_dir=data_dir)
    frame = pd1_builder.load("pd1/mini", name, as_="dataframe", data_dir=data_dir)
    stored = pd1_builder.load("pd1/mini", as_="dataframe", data_dir=data_dir)
    assert len(stored) == len(trials())
    assert list(frame.columns) == list(stored.columns)
    by_id = frame.set_index("trial_id")
    trial_ids = [trial_id for task in data.tasks for trial_id in task.trial_ids]
    assert sorted(by_id.index) == sorted(trial_ids)
    assert by_id.loc[trial_ids, "y"].tolist() == [y for task in data.tasks for y in task.y]
    objectives = np.concatenate([task.objective for task in data.tasks])
    np.testing.assert_array_equal(by_id.loc[trial_ids, METRIC].to_numpy(), objectives)


@pytest.mark.parametrize("name", EXPECTED)
def test_blocks_hold_the_values_of_the_tasks(name: str, data_dir: Path) -> None:
    data = pd1_builder.load("pd1/mini", name, data_dir=data_dir)
    place_of = {
        trial["trial_id"]: (trial["block"], trial["task"], trial["hyperparameters.a"])
        for _, trial in trials()
        if trial["block"]
    }
    in_tasks = {
        place_of[trial_id]: float(y)
        for task in data.tasks
        for trial_id, y in zip(task.trial_ids, task.y, strict=True)
        if trial_id in place_of
    }
    # Phase 1 alone has but one block.
    names = ["phase0-block", "phase1-block"][-len(data.blocks) :]
    in_blocks = {
        (block_id, task, float(x[0])): float(y)
        for block_id, block in zip(names, data.blocks, strict=True)
        for x, values in zip(block.x, block.y, strict=True)
        for task, y in zip(block.tasks, values, strict=True)
        if math.isfinite(y)
    }
    assert in_blocks == in_tasks


def test_a_diverged_trial_has_a_value_in_the_blocks_of_the_empirical_gp(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"block": "phase1-b", "status": "diverged"}
    trials = [
        record("t-1", "t-1/0", value=None, **fields),
        record("t-2", "t-2/0", value=0.25, **fields),
    ]
    write_version(tmp_path, "pd1/mini:1.0.0", {"matched": trials})
    (block,) = pd1_builder.load("pd1/mini", "empirical_gp", data_dir=tmp_path).blocks
    assert block.tasks == ("t-1", "t-2")
    # Without a value the error counts as 1; a value from before the divergence stays.
    expected = [[-math.log(1.0 + 1e-10), -math.log(0.25 + 1e-10)]]
    np.testing.assert_allclose(block.y, expected, rtol=1e-12)


def test_phase_1_replaces_phase_0_where_both_ran_an_input(tmp_path: Path) -> None:
    splits = {
        "matched": [
            record(task, f"{phase}/{task}/{i}", i / 8, phase=phase, block=f"phase{phase}-b")
            for task in ("t-1", "t-2")
            for phase, inputs in ((0, 3), (1, 2))
            for i in range(inputs)
        ]
    }
    write_version(tmp_path, "pd1/mini:1.0.0", splits)

    def shapes(data: TuningData) -> list[tuple[int, ...]]:
        return [block.y.shape for block in data.blocks]

    assert shapes(pd1_builder.load("pd1/mini", "paper", data_dir=tmp_path)) == [(3, 2), (2, 2)]
    data = pd1_builder.load("pd1/mini", "empirical_gp", data_dir=tmp_path)
    assert shapes(data) == [(1, 2), (2, 2)]
    assert data.tasks[0].trial_ids == ("0/t-1/2", "1/t-1/0", "1/t-1/1")


def test_a_preparation_of_pd1_is_refused_for_other_datasets() -> None:
    with pytest.raises(InvalidInputError, match=r"hpob/5636: .*'paper' reads only pd1; use"):
        find_preparation("paper", "hpob/5636")
    assert find_preparation("observed", "pd1/mini").name == "observed"
    assert [find_preparation(None, name).name for name in ("pd1/release", "hpob/5636", "trials/x")] == [
        "paper",
        "observed",
        "observed",
    ]


def test_curves_that_a_version_lacks_are_named(tmp_path: Path) -> None:
    write_version(
        tmp_path,
        "pd1/mini:1.0.0",
        {"matched": [record("t-1", "a")]},
        without=("curves.train_cost", "curves.valid/error_rate"),
    )
    for as_ in ("tuning_data", "dataframe"):
        with pytest.raises(InvalidInputError, match=r"curves\.train_cost, curves\.valid/error_rate"):
            pd1_builder.load("pd1/mini", "mf_prior_bench", as_=as_, data_dir=tmp_path)
    assert len(pd1_builder.load("pd1/mini", "syne_tune", data_dir=tmp_path).tasks) == 1
