"""Evaluations of several machines put together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.join import Evaluation, join_evaluations
from hyperbo.evaluation.records.run_array import missing_arms
from hyperbo.evaluation.records.runs import COLUMNS


@pytest.fixture
def halves(records, metadata, losses):
    """One machine ran the first two methods, the other the rest; both ran STBO with seed 0."""
    first = records["method"].isin(["H-NLL", "H-EKL"]) | (
        (records["method"] == "STBO") & (records["seed"] == 0)
    )
    second = records["method"].isin(["STBO", "Rand"])
    methods = metadata["methods"]
    parts = {
        "here": metadata
        | {
            "methods": {name: methods[name] for name in ("H-NLL", "H-EKL", "STBO")},
            "seconds": {"build": 3.0, "evaluate": {"H-NLL": 1.0, "STBO": 2.0}},
            "run_ids": ["a", "b"],
        },
        "there": metadata
        | {
            "methods": {name: methods[name] for name in ("STBO", "Rand")},
            "seconds": {"evaluate": {"STBO": 10.0, "Rand": 0.5}},
            "run_ids": ["b", "c"],
            "code_version": "0.2.0",
            "platform": {"Python": "3.11.2", "JAX": "0.11.0"},
            "started": "2026-11-21T05:30:00+00:00",
            "finished": "2026-11-21T06:04:00Z",
            "command": "hyperbo evaluate",
        },
    }
    return {
        "here": Evaluation(records[first], parts["here"], losses),
        "there": Evaluation(records[second], parts["there"]),
    }


def test_the_parts_make_the_whole(halves, records, metadata, losses):
    joined = join_evaluations(halves)
    order = ["method", "task", "seed", "iteration"]
    pd.testing.assert_frame_equal(
        joined.records.sort_values(order, ignore_index=True), records.sort_values(order, ignore_index=True)
    )
    pd.testing.assert_frame_equal(joined.losses, losses)
    own = joined.metadata
    np.testing.assert_array_equal(
        simple_regrets(joined.records, own).values, simple_regrets(records, metadata).values
    )
    assert own["methods"] == metadata["methods"]
    assert own["seconds"] == {"build": 3.0, "evaluate": {"H-NLL": 1.0, "STBO": 12.0, "Rand": 0.5}}
    assert own["run_ids"] == ["a", "b", "c"]
    assert own["code_version"] == f"{metadata['code_version']}; 0.2.0"
    assert own["platform"]["Python"] == "3.11.2"
    assert own["platform"]["JAX"] == "0.10.2; 0.11.0"
    assert (own["started"], own["finished"]) == ("2026-11-21T05:30:00+00:00", metadata["finished"])
    assert own["command"] == "hyperbo demo --seeds 5\nhyperbo evaluate"
    assert "objective" not in own


def test_what_regret_means_survives(halves):
    said = {"regret": "normalised", "runs_per_prior": 2}
    parts = {
        name: Evaluation(each.records.assign(y_min=-1e3), each.metadata | said)
        for name, each in halves.items()
    }
    own = join_evaluations(parts).metadata
    assert {key: own[key] for key in said} == said


def test_joining_changes_nothing_that_is_one_already(halves, records, metadata):
    whole = Evaluation(records, metadata)
    joined = join_evaluations({"a": whole, "b": whole})
    pd.testing.assert_frame_equal(joined.records, records)
    assert joined.metadata == metadata
    assert joined.losses is None
    # A part whose runs another holds adds no seconds, whichever comes first.
    part = Evaluation(records, metadata | {"run_ids": metadata["run_ids"][:1]})
    for parts in ({"a": whole, "b": part}, {"a": part, "b": whole}):
        assert join_evaluations(parts).metadata["seconds"] == metadata["seconds"]


def test_a_study_that_stopped_goes_on(records, metadata):
    stopped = records[(records["seed"] < 2) | ((records["seed"] == 2) & (records["iteration"] <= 7))]
    failure = {"method": "STBO", "task": "easy", "reason": "no memory"}
    first = metadata | {
        "seeds": [0, 1, 2],
        "failures": [failure | {"seed": 2}],
        "flat_tasks": ["flat"],
    }
    again = records[(records["seed"] >= 2) & ~((records["method"] == "Rand") & (records["seed"] == 4))]
    second = metadata | {
        "seeds": [4, 2, 3],
        "failures": [{"method": "Rand", "task": "easy", "seed": 4, "reason": "stopped"}],
        "flat_tasks": ["flat", "flatter"],
    }
    joined = join_evaluations({"monday": Evaluation(stopped, first), "tuesday": Evaluation(again, second)})
    assert joined.metadata["seeds"] == [0, 1, 2, 3, 4]
    assert joined.metadata["flat_tasks"] == ["flat", "flatter"]
    # The run that failed on Monday was finished on Tuesday.
    assert joined.metadata["failures"] == second["failures"]
    missing = missing_arms(simple_regrets(joined.records, joined.metadata))
    assert {(arm.method, arm.seeds) for arm in missing} == {("Rand", (4,))}


def test_seconds_of_all_are_known_where_no_run_is_shared_in_part(halves):
    totals = {"here": {"evaluate": 3.0}, "there": {"evaluate": 10.5, "pre-train": 1.0}}
    for run_ids, known in ((["c", "d"], {"evaluate": 13.5, "pre-train": 1.0}), (["b", "c"], None)):
        parts = {
            name: Evaluation(each.records, each.metadata | {"total_seconds": totals[name]})
            for name, each in halves.items()
        }
        parts["there"].metadata["run_ids"] = run_ids
        assert join_evaluations(parts).metadata.get("total_seconds") == known
    del parts["here"].metadata["total_seconds"]
    assert "total_seconds" not in join_evaluations(parts).metadata


def test_a_failure_that_parts_share_is_one(records, metadata):
    lacking = records[~((records["method"] == "Rand") & (records["seed"] == 4))]
    failures = [{"method": "Rand", "task": task, "seed": 4, "reason": "NaN"} for task in metadata["tasks"]]
    part = Evaluation(lacking, metadata | {"failures": failures})
    assert join_evaluations({"a": part, "b": part}).metadata["failures"] == failures


def test_every_two_parts_must_agree(halves, records, metadata):
    # The first has no Rand; the other two have it, configured in two ways.
    parts = {"here": halves["here"]}
    for name, seeds, configuration in (("one", (0, 1, 2), {}), ("two", (3, 4), {"other": 1})):
        own = records[(records["method"] == "Rand") & records["seed"].isin(seeds)]
        parts[name] = Evaluation(own, metadata | {"methods": {"Rand": configuration}})
    with pytest.raises(InvalidInputError, match=r"^one and two: differ in the configuration of Rand"):
        join_evaluations(parts)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.integers(0, 3)), min_size=48, max_size=48), st.integers(1, 4))
def test_runs_dealt_out_in_any_way_make_the_whole(shared_metadata, dealt, machines):
    # Each run is with the machines drawn for it, or with the first where none was.
    runs = [(method, task, seed) for method in "abcd" for task in ("p", "q", "r") for seed in range(4)]
    held = [{machine % machines for machine in of_run} or {0} for of_run in dealt]
    frames = [
        pd.DataFrame(
            [
                (*run[:2], "d", run[2], t, f"trial-{t}", number / 64 + t, 1.0, 100.0)
                for number, run in enumerate(runs)
                if machine in held[number]
                for t in (1, 2)
            ],
            columns=list(COLUMNS),
        )
        for machine in range(machines)
    ]
    parts = {
        f"machine-{machine}": Evaluation(
            frame,
            shared_metadata
            | {key: list(dict.fromkeys(frame[key[:-1]])) for key in ("tasks", "seeds")}
            | {"methods": {method: {} for method in dict.fromkeys(frame["method"])}, "iterations": 2},
        )
        for machine, frame in enumerate(frames)
        if len(frame)
    }
    joined = join_evaluations(parts)
    rows = joined.records.sort_values(["method", "task", "seed", "iteration"], ignore_index=True)
    assert list(rows[["method", "task", "seed"]].itertuples(index=False, name=None))[::2] == runs
    assert rows["y"].tolist() == [number / 64 + t for number in range(48) for t in (1, 2)]
    assert missing_arms(simple_regrets(joined.records, joined.metadata)) == ()


def test_further_columns_are_those_of_the_first(records, metadata):
    predicted = records.assign(mean=records["y"], deviation=1.0)
    for parts in ((predicted, records), (predicted, predicted.assign(mean=0.0))):
        joined = join_evaluations(
            dict(zip("ab", (Evaluation(each, metadata) for each in parts), strict=True))
        )
        np.testing.assert_array_equal(joined.records["mean"], records["y"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"manifest_hash": "0"}, r"^here and there: differ in manifest_hash"),
        ({"preparation": "raw", "dataset": "other"}, "differ in dataset .*; preparation"),
        ({"iterations": 31}, "differ in iterations"),
        ({"objective": {"name": "accuracy", "direction": "maximize"}}, r"differ in objective \(None, "),
        ({"regret": "normalised"}, r"differ in regret \(None, 'normalised'\)"),
        ({"runs_per_prior": 2}, r"differ in runs_per_prior \(None, 2\)"),
        ({"methods": {"STBO": {"refit": {}}, "Rand": {}}}, "differ in the configuration of STBO"),
        ({"started": "2026-11-21T06:00:00"}, "started cannot be compared: .*; give ISO 8601 times"),
    ],
)
def test_what_does_not_belong_together_is_not_joined(halves, change, message):
    there = halves["there"]
    halves["there"] = Evaluation(there.records, there.metadata | change)
    with pytest.raises(InvalidInputError, match=message):
        join_evaluations(halves)


def test_a_run_with_two_outcomes_is_refused(halves, records):
    there = halves["there"]
    changed = there.records.copy()
    row = changed.index[(changed["method"] == "STBO") & (changed["seed"] == 0)][3]
    changed.loc[row, "trial_id"] = "another"
    halves["there"] = Evaluation(changed, there.metadata)
    with pytest.raises(InvalidInputError, match="method STBO, task digits-cnn-32, seed 0, iteration 4"):
        join_evaluations(halves)
    with pytest.raises(InvalidInputError, match="no evaluation to join"):
        join_evaluations({})


def test_a_loss_with_two_values_is_refused(halves, losses):
    there = halves["there"]
    halves["there"] = Evaluation(there.records, there.metadata, losses.assign(value=losses["value"] + 1e-9))
    with pytest.raises(InvalidInputError, match="here and there: method H-NLL, "):
        join_evaluations(halves)
