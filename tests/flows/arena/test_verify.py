"""Verification finds what was changed in results, and merging refuses what does not agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arena_cases import METHODS, run_tiny, tiny_protocol, write_versions

from flows.arena.merge import merge_bundles
from flows.arena.protocol import PROTOCOL
from flows.arena.verify import parts_of, simulate_again, verify_bundle
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.join import Evaluation


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_versions(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def bundle(data, runs):
    return run_tiny(data, runs)


def problems(bundle, data):
    return verify_bundle(bundle, data, tiny_protocol(data))


def with_part(bundle, name, records=None, **metadata):
    """The bundle with other records or metadata of a part."""
    part = bundle.parts[name]
    changed = Evaluation(part.records if records is None else records, {**part.metadata, **metadata})
    return replace(bundle, parts={**bundle.parts, name: changed})


def first_of(records, method="Rand"):
    return records.index[(records["method"] == method) & (records["iteration"] == 2)][0]


def test_a_bundle_as_it_was_made_has_no_problem(bundle, data):
    assert problems(bundle, data) == []


def test_a_bundle_of_another_protocol_is_refused(bundle):
    with pytest.raises(InvalidInputError, match="protocol"):
        parts_of(bundle, PROTOCOL)


@pytest.mark.parametrize("part", ["mini", "rows"])
def test_a_value_that_is_not_in_the_data_is_found(bundle, data, part):
    records = bundle.parts[part].records.copy()
    row = first_of(records)
    records.loc[row, "y"] = np.nextafter(records.loc[row, "y"], -np.inf)
    (found,) = problems(with_part(bundle, part, records), data)
    assert "not those of the data" in found
    assert f"seed {records.loc[row, 'seed']}, iteration 2" in found


@pytest.mark.parametrize("column", ["y_max", "y_min", "objective"])
def test_another_best_or_worst_value_is_found(bundle, data, column):
    records = bundle.parts["mini"].records.copy()
    records.loc[records["task"] == "one-a", column] += 0.125
    (found,) = problems(with_part(bundle, "mini", records), data)
    assert "one-a" in found


def test_another_given_value_is_found(bundle, data):
    records = bundle.parts["rows"].records.copy()
    of_run = (records["method"] == "Rand") & (records["seed"] == 1)
    records.loc[of_run, "y_initial"] -= 0.125
    assert "not those of the data" in problems(with_part(bundle, "rows", records), data)[0]


def test_a_trial_that_was_swapped_is_found(bundle, data):
    records = bundle.parts["mini"].records.copy()
    one = first_of(records)
    same = records[["method", "task", "seed"]].eq(records.loc[one, ["method", "task", "seed"]]).all(axis=1)
    other = records.index[same & (records["iteration"] == 5)][0]
    records.loc[one, "trial_id"], records.loc[other, "trial_id"] = (
        records.loc[other, "trial_id"],
        records.loc[one, "trial_id"],
    )
    assert "2 observations" in problems(with_part(bundle, "mini", records), data)[0]


def test_a_trial_that_is_not_there_is_found(bundle, data):
    records = bundle.parts["mini"].records.copy()
    records.loc[first_of(records), "trial_id"] = "one-a/99"
    assert "no trial 'one-a/99'" in problems(with_part(bundle, "mini", records), data)[0]


@pytest.mark.parametrize("part", ["mini", "rows"])
def test_a_trial_that_is_observed_again_is_found(bundle, data, part):
    records = bundle.parts[part].records.copy()
    copied = ["trial_id", "y", "objective"]
    rows = records[records["method"] == "Rand"].head(2).index
    records.loc[rows[1], copied] = records.loc[rows[0], copied]
    (found,) = problems(with_part(bundle, part, records), data)
    assert "twice" in found


def test_a_run_that_is_missing_is_found_unless_its_failure_is_named(bundle, data):
    records = bundle.parts["mini"].records
    lost = (records["method"] == "Portfolio") & (records["task"] == "two-a") & (records["seed"] == 1)
    (found,) = problems(with_part(bundle, "mini", records[~lost]), data)
    assert "1 runs are missing" in found
    assert "Portfolio on two-a with seed 1" in found
    failure = {"method": "Portfolio", "task": "two-a", "seed": 1, "reason": "out of memory"}
    assert problems(with_part(bundle, "mini", records[~lost], failures=[failure]), data) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("preparation", "paper"), ("iterations", 7), ("manifest_hash", "0" * 64), ("seeds", [0, 1, 2])],
)
def test_metadata_that_the_protocol_does_not_have_are_found(bundle, data, name, value):
    found = problems(with_part(bundle, "mini", **{name: value}), data)
    assert any(each.startswith(f"mini: {name} is") for each in found)


def test_a_method_of_other_settings_is_found(bundle, data):
    methods = bundle.parts["mini"].metadata["methods"]
    changed = methods | {"Portfolio": {"method": "Portfolio", "configuration": {"greed": 2}}}
    assert problems(with_part(bundle, "mini", methods=changed), data) == [
        "mini: Portfolio is not at the defaults of this version"
    ]


def test_a_method_whose_source_is_missing_is_found(bundle, data):
    part = bundle.parts["mini"]
    methods = part.metadata["methods"] | {"own:Own": {"method": "own:Own", "source_sha256": "0" * 64}}
    own = part.records[part.records["method"] == "Rand"].assign(method="own:Own")
    records = part.records.merge(own, how="outer")
    found = problems(with_part(bundle, "mini", records, methods=methods), data)
    assert "mini: the source of own:Own is not in the bundle, or is not what ran" in found
    assert "rows: nothing is said of own:Own" in found


def test_a_part_without_a_baseline_is_found(bundle, data):
    part = bundle.parts["mini"]
    methods = {name: each for name, each in part.metadata["methods"].items() if name != "Rand"}
    records = part.records[part.records["method"] != "Rand"]
    assert "mini: the baselines Rand are missing" in problems(
        with_part(bundle, "mini", records, methods=methods), data
    )


def test_without_the_data_a_part_cannot_be_verified(bundle, data, tmp_path):
    # PD1 mini would be built.
    alone = replace(bundle, parts={"rows": bundle.parts["rows"]})
    (found,) = verify_bundle(alone, tmp_path, tiny_protocol(data))
    assert found.startswith("rows: cannot be verified")


@pytest.mark.slow
def test_runs_are_the_same_when_simulated_anew_and_others_are_found(bundle, data):
    protocol = tiny_protocol(data)
    assert simulate_again(bundle, data, 6, protocol=protocol) == []
    records = bundle.parts["mini"].records.copy()
    trials = records.groupby(["method", "task", "seed"])["trial_id"]
    records["trial_id"] = trials.transform(lambda column: column.to_numpy()[::-1])
    found = simulate_again(with_part(bundle, "mini", records), data, 6, protocol=protocol)
    assert {each.split(":")[0] for each in found} == {f"mini, {method}" for method in METHODS}


def test_bundles_of_other_methods_are_merged(bundle, data, runs):
    own = run_tiny(data, runs, ("Default-Rand", "Best-average", "Rand"))
    merged = merge_bundles({"a": bundle, "b": own})
    assert set(merged.parts["rows"].metadata["methods"]) == {*METHODS, "Default-Rand"}
    assert problems(merged, data) == []
    rows = len(bundle.parts["mini"].records)
    assert len(merged.parts["mini"].records) == rows + rows // 3
    assert len(merged.machines) == 2


def test_a_bundle_merged_with_itself_is_itself(bundle):
    merged = merge_bundles({"a": bundle, "b": bundle})
    assert merged.parts["mini"].records.equals(bundle.parts["mini"].records)
    assert merged.machines == bundle.machines


def test_runs_that_differ_are_not_merged_and_both_are_named(bundle):
    records = bundle.parts["mini"].records.copy()
    row = first_of(records)
    before = records.loc[row, "y"]
    records.loc[row, "y"] -= 0.5
    with pytest.raises(InvalidInputError, match="another outcome") as raised:
        merge_bundles({"a": bundle, "b": with_part(bundle, "mini", records)})
    assert f"y {before} and {before - 0.5}" in str(raised.value)


def test_bundles_of_two_protocols_are_not_merged(bundle):
    other = replace(bundle, protocol={"number": 2, "sha256": "1" * 64})
    with pytest.raises(InvalidInputError, match="protocols"):
        merge_bundles({"a": bundle, "b": other})
