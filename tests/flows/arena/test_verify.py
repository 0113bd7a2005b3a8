"""Verification finds what was changed in results, and merging refuses what does not agree."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from arena_cases import METHODS, run_tiny, tiny_protocol, write_versions
from hyperbo_flows.arena.again import simulate_again
from hyperbo_flows.arena.bundle import read_bundle, write_bundle
from hyperbo_flows.arena.merge import merge_bundles
from hyperbo_flows.arena.protocol import PROTOCOL
from hyperbo_flows.arena.results import protocol_entry
from hyperbo_flows.arena.run import NEEDS_MATCHED
from hyperbo_flows.arena.verify import not_checked, parts_of, plain, verify_bundle
from hyperbo_flows.experiments.arms import arms_by_name

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
        "mini: Portfolio is not at the defaults of this version",
        "Portfolio has other settings in other parts",
    ]


def test_a_method_whose_source_is_missing_is_found(bundle, data):
    part = bundle.parts["mini"]
    methods = part.metadata["methods"] | {"own:Own": {"method": "own:Own", "source_sha256": "0" * 64}}
    own = part.records[part.records["method"] == "Rand"].assign(method="own:Own")
    records = part.records.merge(own, how="outer")
    found = problems(with_part(bundle, "mini", records, methods=methods), data)
    assert "mini: the source of own:Own is not in the bundle, or is not what ran" in found
    assert not [each for each in found if each.startswith("rows")]


def test_a_method_that_is_left_out_of_a_part_of_its_division_is_found(bundle, data):
    first, second = tiny_protocol(data).divisions
    protocol = replace(tiny_protocol(data), divisions=(replace(first, parts=first.parts + second.parts),))
    part = bundle.parts["mini"]
    methods = {name: each for name, each in part.metadata["methods"].items() if name != "Portfolio"}
    records = part.records[part.records["method"] != "Portfolio"]
    changed = replace(with_part(bundle, "mini", records, methods=methods), protocol=protocol_entry(protocol))
    assert "mini: nothing is said of Portfolio" in verify_bundle(changed, data, protocol)


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
    same = simulate_again(bundle, data, 1000, protocol=protocol)
    assert (same.problems, same.arms, same.of_arms) == ((), 6, 6)
    # A fold of the first part tests tasks of a dataset; of each arm, six observations of every run.
    assert same.observations % 6 == 0
    assert same.observations > 0
    records = bundle.parts["mini"].records.copy()
    trials = records.groupby(["method", "task", "seed"])["trial_id"]
    records["trial_id"] = trials.transform(lambda column: column.to_numpy()[::-1])
    found = simulate_again(with_part(bundle, "mini", records), data, 6, 5, protocol)
    assert found.seed == 5
    assert {each.split(":")[0] for each in found.problems} == {f"mini, {method}" for method in METHODS}


@pytest.mark.slow
def test_observations_that_lack_when_simulated_anew_are_found(bundle, data):
    fewer = replace(bundle, parts={"rows": bundle.parts["rows"]})
    records = fewer.parts["rows"].records
    found = simulate_again(
        with_part(fewer, "rows", records[records["iteration"] < 6]), data, 3, 0, tiny_protocol(data)
    )
    assert len(found.problems) == 3
    assert all("here and not in the bundle" in each for each in found.problems)


def test_the_arms_that_are_simulated_anew_cannot_be_foreseen(bundle, data):
    draws = {simulate_again(bundle, data, 0, protocol=tiny_protocol(data)).seed for _ in range(3)}
    assert len(draws) == 3


def test_a_method_of_another_source_is_not_simulated_anew(bundle, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    source = (
        "from dataclasses import dataclass\nfrom hyperbo.methods import Rand\n\n\n"
        "@dataclass(frozen=True)\nclass Own(Rand):\n    pass\n"
    )
    (tmp_path / "arena_own.py").write_text(source)
    alone = replace(
        bundle, parts={"rows": bundle.parts["rows"]}, sources={"arena_own:Own": b"# another source"}
    )
    own = {"arena_own:Own": {"method": "arena_own:Own", "source_sha256": "0" * 64, "configuration": {}}}
    (problem,) = simulate_again(
        with_part(alone, "rows", methods=own), data, 1, protocol=tiny_protocol(data)
    ).problems
    assert "its source here" in problem
    assert hashlib.sha256(source.encode()).hexdigest()[:12] in problem


def test_a_bundle_of_methods_whose_settings_are_tuples_is_verified(data, runs, tmp_path):
    # STBO costs seconds to run: its description with the runs of another method is enough here.
    bundle = run_tiny(data, runs)
    for name, part in bundle.parts.items():
        dataset = part.metadata["dataset"]
        arms = arms_by_name(["STBO", "CTS", "Mix"], dataset)
        own = [part.records[part.records["method"] == "Rand"].assign(method=arm) for arm in arms]
        methods = part.metadata["methods"] | {label: arm.description() for label, arm in arms.items()}
        bundle = with_part(bundle, name, pd.concat([part.records, *own], ignore_index=True), methods=methods)
    # So the test says something: there are tuples, which JSON makes lists.
    described = bundle.parts["mini"].metadata["methods"]
    assert {label for label, each in described.items() if plain(each) != each} >= {"STBO", "CTS"}
    write_bundle(bundle, tmp_path / "bundle.zip")
    found = read_bundle(tmp_path / "bundle.zip")
    assert problems(found, data) == []
    assert not_checked(found, tiny_protocol(data)) == []


@pytest.mark.parametrize("column", ["y_initial", "objective_initial"])
@pytest.mark.parametrize("part", ["mini", "rows"])
def test_a_method_cannot_claim_a_value_that_it_was_given(bundle, data, part, column):
    records = bundle.parts[part].records.copy()
    portfolio = records["method"] == "Portfolio"
    records.loc[portfolio, column] = records.loc[portfolio, "y_max"]
    found = problems(with_part(bundle, part, records), data)
    assert found
    assert all("not those of the data" in each and "Portfolio" in each for each in found)


@pytest.mark.parametrize("change", [{"extra": 1.0}, {"y_initial": None}])
def test_columns_that_a_bundle_has_not_are_found(bundle, data, change):
    ((column, value),) = change.items()
    records = bundle.parts["mini"].records
    records = records.drop(columns=column) if value is None else records.assign(**change)
    (found,) = problems(with_part(bundle, "mini", records), data)
    assert found == f"mini: columns missing or unknown: {column}"


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("mini", "runs_per_prior", 2),
        ("rows", "runs_per_prior", 4),
        ("mini", "flat_tasks", ["one-a"]),
        ("mini", "objective", {"name": "other", "direction": "maximize"}),
    ],
)
def test_metadata_that_the_data_do_not_have_are_found(bundle, data, part, name, value):
    (found,) = problems(with_part(bundle, part, **{name: value}), data)
    assert found.startswith(f"{part}: {name} is")


def without(bundle, method, part, reason=NEEDS_MATCHED):
    """The bundle with a method that is said not to apply to a part, and has no run there."""
    records, metadata = bundle.parts[part].records, bundle.parts[part].metadata
    methods = {name: each for name, each in metadata["methods"].items() if name != method}
    changed = with_part(bundle, part, records[records["method"] != method], methods=methods)
    return replace(changed, does_not_apply={part: {method: reason}})


def test_a_method_cannot_say_that_it_does_not_apply_where_it_does(bundle, data):
    assert problems(without(bundle, "Portfolio", "rows"), data) == [
        "rows: Portfolio is said not to apply, and does"
    ]


@pytest.mark.parametrize(
    ("part", "method", "reason", "words"),
    [
        ("rows", "Portfolio", NEEDS_MATCHED, "has runs"),
        ("rows", "invented", NEEDS_MATCHED, "no method of the bundle"),
        ("rows", "H-EKL", "it was bad", "'it was bad'"),
        ("nowhere", "H-EKL", NEEDS_MATCHED, "no part of the bundle"),
    ],
)
def test_what_does_not_apply_is_checked(bundle, data, part, method, reason, words):
    (found,) = problems(replace(bundle, does_not_apply={part: {method: reason}}), data)
    assert words in found


def test_a_method_that_does_not_apply_is_no_problem(bundle, data):
    assert problems(replace(bundle, does_not_apply={"rows": {"H-EKL": NEEDS_MATCHED}}), data) == []


def test_a_method_of_another_that_is_said_not_to_apply_is_told(bundle, data):
    part = bundle.parts["mini"]
    source = b"class Own: ...\n"
    own = {"method": "own:Own", "source_sha256": hashlib.sha256(source).hexdigest()}
    rows = part.records[part.records["method"] == "Rand"].assign(method="own:Own")
    records = pd.concat([part.records, rows], ignore_index=True)
    changed = with_part(bundle, "mini", records, methods=part.metadata["methods"] | {"own:Own": own})
    changed = replace(
        changed, sources={"own:Own": source}, does_not_apply={"rows": {"own:Own": NEEDS_MATCHED}}
    )
    assert problems(changed, data) == []
    assert not_checked(changed, tiny_protocol(data)) == ["rows: not checked that own:Own cannot be run there"]


def changed_settings(bundle, settings):
    for name, part in bundle.parts.items():
        methods = part.metadata["methods"] | {"Portfolio": settings}
        bundle = with_part(bundle, name, methods=methods)
    return bundle


def test_settings_that_other_code_may_have_by_default_are_told(bundle, data):
    other = changed_settings(bundle, {"method": "Portfolio", "configuration": {"greed": 2}})
    other = replace(other, machines=({**bundle.machines[0], "code_version": "abc"},))
    assert problems(other, data) == []
    (line,) = not_checked(other, tiny_protocol(data))
    assert line.startswith("settings not checked of Portfolio")
    assert "made with code abc, here" in line


def test_a_method_of_two_settings_in_a_bundle_is_found(bundle, data):
    part = bundle.parts["mini"]
    own = [{"method": "own:Own", "source_sha256": each * 64} for each in "01"]
    for name, settings in zip(("mini", "rows"), own, strict=True):
        part = bundle.parts[name]
        bundle = with_part(bundle, name, methods=part.metadata["methods"] | {"own:Own": settings})
    assert "own:Own has other settings in other parts" in problems(bundle, data)


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


@pytest.mark.parametrize("column", ["y_min", "y_initial", "objective_initial"])
def test_runs_whose_regret_differs_are_not_merged(bundle, column):
    records = bundle.parts["rows"].records.copy()
    records[column] -= 0.5
    with pytest.raises(InvalidInputError, match=column):
        merge_bundles({"a": bundle, "b": with_part(bundle, "rows", records)})


def test_two_sources_of_one_method_are_not_merged(bundle):
    one, other = (
        replace(bundle, parts={part: bundle.parts[part]}, sources={"own:Own": source})
        for part, source in (("mini", b"1"), ("rows", b"2"))
    )
    with pytest.raises(InvalidInputError, match="the source of own:Own"):
        merge_bundles({"a": one, "b": other})


@pytest.mark.parametrize(("part", "words"), [("mini", "on other data"), ("rows", "the settings")])
def test_two_settings_of_one_method_are_not_merged(bundle, part, words):
    one = replace(bundle, parts={"mini": bundle.parts["mini"]})
    other = changed_settings(bundle, {"method": "Portfolio", "configuration": {"greed": 2}})
    other = replace(other, parts={part: other.parts[part]})
    with pytest.raises(InvalidInputError, match=words):
        merge_bundles({"a": one, "b": other})


def test_hidden_layers_that_differ_on_hpob_are_merged(bundle):
    def described(hidden):
        return {"method": "H-NLL", "configuration": {"architecture": {"hidden": hidden, "kernel": "rbf"}}}

    one, other = (
        with_part(
            replace(bundle, parts={part: bundle.parts[part]}),
            part,
            methods=bundle.parts[part].metadata["methods"] | {"H-NLL": described(hidden)},
        )
        for part, hidden in (("mini", [8]), ("rows", [128, 128]))
    )
    assert set(merge_bundles({"a": one, "b": other}).parts) == {"mini", "rows"}


@pytest.mark.parametrize("said", [{"Portfolio": NEEDS_MATCHED}, {"H-EKL": "another reason"}])
def test_bundles_that_differ_in_what_applies_are_not_merged(bundle, said):
    one = replace(bundle, does_not_apply={"rows": {"H-EKL": NEEDS_MATCHED}})
    with pytest.raises(InvalidInputError, match="applies to rows"):
        merge_bundles({"a": one, "b": replace(bundle, does_not_apply={"rows": said})})
