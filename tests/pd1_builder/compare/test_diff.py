from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from synthetic_pd1 import TASKS, rows, write
from version_folders import OBJECTIVE, SPACE, record, write_version

import pd1_builder
from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import NotAvailableError, VersionConflictError
from pd1_builder.compare.diff import Diff, Example, FieldChange, diff_folders
from pd1_builder.compare.release_checks import check_number

METRIC = f"metrics.{OBJECTIVE}"
Splits = dict[str, list[dict[str, Any]]]


def records() -> Splits:
    return {
        "matched": [record(task, f"{task}/{i}", i / 8, 0.1 * i) for task in ("t-1", "t-2") for i in range(4)],
        "unmatched": [record("t-1", f"u/{i}", i / 8, None if i == 0 else 0.5) for i in range(3)],
    }


def compare(tmp_path: Path, old: Splits, new: Splits, version: str = "1.0.1", **options: Any) -> Diff:
    write_version(tmp_path, "pd1/mini:1.0.0", old)
    write_version(tmp_path, f"pd1/mini:{version}", new, parent="1.0.0", **options)
    return pd1_builder.diff("pd1/mini:1.0.0", f"pd1/mini:{version}", tmp_path)


def check(found: Diff) -> None:
    check_number(found.parent.version, found.manifest.version, found.changes)


def is_empty(found: Diff) -> bool:
    return not any(
        (
            *(found.added, found.removed, found.changed, found.relations, found.declared),
            *(found.fields_added, found.fields_removed, found.splits_added, found.splits_removed),
        )
    )


def add_record(splits: Splits) -> None:
    splits["matched"].append(record("t-2", "t-2/new"))


def add_split(splits: Splits) -> None:
    splits["later"] = [record("t-3", "later/0")]


def add_field(splits: Splits) -> None:
    for each in (*splits["matched"], *splits["unmatched"]):
        each["metrics.new"] = 1.0


def remove_record(splits: Splits) -> None:
    del splits["unmatched"][1]


def remove_split(splits: Splits) -> None:
    splits["matched"] += splits.pop("unmatched")


def remove_field(splits: Splits) -> None:
    for each in (*splits["matched"], *splits["unmatched"]):
        del each["curves.train_cost"]


def retype_field(splits: Splits) -> None:
    for each in (*splits["matched"], *splits["unmatched"]):
        each["phase"] = 1.0


def change_value(splits: Splits) -> None:
    splits["matched"][5][METRIC] = 0.75


def move_record(splits: Splits) -> None:
    splits["matched"].append(splits["unmatched"].pop())


def change_text(splits: Splits) -> None:
    splits["matched"][0]["origin"] = "collected"


def change_task(splits: Splits) -> None:
    splits["matched"][0]["task"] = "t-2"


def change_curve(splits: Splits) -> None:
    splits["matched"][0]["curves.train_cost"] = [1.0, 0.25]


def shorten_curve(splits: Splits) -> None:
    splits["matched"][0]["curves.train_cost"] = [1.0]


def nothing(splits: Splits) -> None:
    pass


def rename_block(splits: Splits) -> None:
    splits["matched"][0]["block"] = "phase1-other"


def another_source(splits: Splits) -> None:
    splits["matched"][0]["source"] = "elsewhere.jsonl:1"


def reverse(splits: Splits) -> None:
    splits["matched"].reverse()


KINDS: list[tuple[str, Callable[[Splits], None]]] = [
    *(("minor", edit) for edit in (add_record, add_split, add_field)),
    *(("major", edit) for edit in (remove_record, remove_split, remove_field, retype_field, change_value)),
    *(("major", edit) for edit in (move_record, change_text, change_task, change_curve, shorten_curve)),
    *(("patch", edit) for edit in (nothing, rename_block, another_source, reverse)),
]
NUMBERS = {"major": "2.0.0", "minor": "1.1.0", "patch": "1.0.1"}


@pytest.mark.parametrize(("bump", "edit"), KINDS, ids=[edit.__name__ for _, edit in KINDS])
def test_each_kind_of_change_needs_its_number_and_refuses_others(
    bump: str, edit: Callable[[Splits], None], tmp_path: Path
) -> None:
    new = records()
    edit(new)
    write_version(tmp_path, "pd1/mini:1.0.0", records())
    for step, number in NUMBERS.items():
        write_version(tmp_path, f"pd1/mini:{number}", new)
        found = pd1_builder.diff("pd1/mini:1.0.0", f"pd1/mini:{number}", tmp_path)
        assert found.bump == bump
        if step == bump:
            check(found)
        else:
            with pytest.raises(VersionConflictError, match=rf"the change is {bump}: .*use {NUMBERS[bump]}$"):
                check(found)


@pytest.mark.parametrize(
    ("space", "warping", "declared"),
    [
        (
            SearchSpace((SPACE.parameters[0], Parameter("b", 1e-3, 2.0, "log"))),
            "negative_log",
            {"search_space.b": ("0.001 .. 1.0 log", "0.001 .. 2.0 log")},
        ),
        (SearchSpace(SPACE.parameters[::-1]), "negative_log", {"search_space": ("a, b", "b, a")}),
        (
            SearchSpace(SPACE.parameters[:1]),
            "negative_log",
            {"search_space": ("a, b", "a"), "search_space.b": ("0.001 .. 1.0 log", "")},
        ),
        (SPACE, "identity", {"warping": ("negative_log", "identity")}),
    ],
    ids=["wider range", "other order", "parameter gone", "other warping"],
)
def test_another_declaration_is_major_and_does_not_change_x_or_y_of_records(
    space: SearchSpace, warping: str, declared: Mapping[str, Any], tmp_path: Path
) -> None:
    found = compare(tmp_path, records(), records(), "2.0.0", space=space, warping=warping)
    assert (found.declared, found.changed, found.bump) == (declared, (), "major")
    check(found)


def test_a_changed_value_is_counted_by_task_and_field_with_examples(tmp_path: Path) -> None:
    new = records()
    for number in range(4):
        new["matched"][number]["phase"] = 0
    new["matched"][6][METRIC] = math.nan
    found = compare(tmp_path, records(), new)
    assert found.changed[0] == FieldChange(
        "t-1", "phase", 4, tuple(Example(f"t-1/{i}", 1, 0) for i in range(3))
    )
    (second,) = found.changed[1:]
    assert second[:3] == ("t-2", METRIC, 1)
    assert second.examples[0].trial_id == "t-2/2"
    assert second.examples[0].old == 0.2
    assert math.isnan(second.examples[0].new)
    with pytest.raises(
        VersionConflictError, match=rf"phase .* 4 records of t-1 .*{METRIC} .* 1 record of t-2"
    ):
        check(found)


def test_records_are_counted_by_split_and_task(tmp_path: Path) -> None:
    new = records()
    add_record(new)
    add_split(new)
    remove_record(new)
    found = compare(tmp_path, records(), new)
    assert found.added == {("later", "t-3"): 1, ("matched", "t-2"): 1}
    assert found.removed == {("unmatched", "t-1"): 1}
    assert found.splits_added == ("later",)
    assert found.changed == ()


def test_a_record_that_moves_to_another_split_changes_its_split(tmp_path: Path) -> None:
    new = records()
    move_record(new)
    found = compare(tmp_path, records(), new)
    assert found.changed == (FieldChange("t-1", "split", 1, (Example("u/2", "unmatched", "matched"),)),)
    assert (found.added, found.removed) == ({}, {})


def test_relations_are_counted_apart(tmp_path: Path) -> None:
    new = records()
    rename_block(new)
    new["matched"][1]["duplicates"] = ["u/0"]
    found = compare(tmp_path, records(), new)
    assert found.relations == {"block": 1, "duplicates": 1}
    assert (found.changed, found.bump) == ((), "patch")


def test_a_column_of_another_type_is_removed_and_added(tmp_path: Path) -> None:
    new = records()
    retype_field(new)
    found = compare(tmp_path, records(), new)
    assert found.fields_added == found.fields_removed == ("phase",)


def test_nan_equals_nan_and_the_two_zeros_differ(tmp_path: Path) -> None:
    old, new = records(), records()
    for splits, zero in ((old, 0.0), (new, -0.0)):
        splits["matched"][0]["curves.train_cost"] = [math.nan, 1.0]
        splits["matched"][1]["curves.train_cost"] = [zero, math.nan]
    found = compare(tmp_path, old, new)
    (change,) = found.changed
    assert change[:3] == ("t-1", "curves.train_cost", 1)
    assert change.examples[0].trial_id == "t-1/1"


def test_columns_of_any_name_and_lists_of_texts_are_compared(tmp_path: Path) -> None:
    old, new = records(), records()
    for splits, tail in ((old, [0.5]), (new, [0.5, 0.5])):
        for each in (*splits["matched"], *splits["unmatched"]):
            del each["hyperparameters.a"], each["hyperparameters.b"]
            each |= {"curves.point": [0.25, *tail], "x": tail}
    write_version(tmp_path, "hpob/all:1.0.0", old, space=None)
    write_version(tmp_path, "hpob/all:2.0.0", new, space=None)
    found = pd1_builder.diff("hpob/all:1.0.0", "hpob/all:2.0.0", tmp_path)
    assert {(change.task, change.field): change.records for change in found.changed} == {
        ("t-1", "curves.point"): 7,
        ("t-2", "curves.point"): 4,
    }
    check(found)


def test_equal_content_is_told_by_the_hash_alone(tmp_path: Path) -> None:
    write_version(tmp_path, "pd1/mini:1.0.0", records())
    folder = write_version(tmp_path, "pd1/mini:1.0.1", records())
    # Bytes no reader could make sense of, of the size that the manifest states.
    path = folder / "matched.parquet"
    with path.open("r+b") as stream:
        stream.seek(4)
        stream.write(bytes(64))
    assert is_empty(pd1_builder.diff("pd1/mini:1.0.0", "pd1/mini:1.0.1", tmp_path))


def test_a_trial_id_that_repeats_is_refused(tmp_path: Path) -> None:
    new = records()
    new["unmatched"][0]["trial_id"] = "t-1/0"
    with pytest.raises(VersionConflictError, match=r"1\.0\.1: a trial_id repeats"):
        compare(tmp_path, records(), new)


def test_missing_versions_and_cut_files_are_refused(tmp_path: Path) -> None:
    compare(tmp_path, records(), records())
    with pytest.raises(NotAvailableError, match=r"pd1/mini:9\.0\.0 is not in"):
        pd1_builder.diff("pd1/mini:1.0.0", "pd1/mini:9.0.0", tmp_path)
    path = tmp_path / "pd1/mini/1.0.1/matched.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(VersionConflictError, match=r"matched\.parquet has \d+ bytes"):
        pd1_builder.diff("pd1/mini:1.0.0", "pd1/mini:1.0.1", tmp_path)
    with pytest.raises(NotAvailableError, match="is no dataset version"):
        diff_folders(tmp_path / "pd1/mini/1.0.0", tmp_path)


VALUES = st.sampled_from([0.0, -0.0, math.nan, 0.5, math.inf])
CURVES = st.lists(VALUES, max_size=2)
RECORDS = st.dictionaries(
    st.integers(0, 9), st.tuples(VALUES, CURVES, st.sampled_from(["matched", "unmatched"])), min_size=1
)


def as_splits(drawn: Mapping[int, tuple[float, list[float], str]]) -> Splits:
    splits: Splits = {}
    for number, (value, curve, split) in drawn.items():
        splits.setdefault(split, []).append(
            record(
                f"t-{number % 2}", f"trial-{number}", **{METRIC: 0.5, "metrics.m": value, "curves.c": curve}
            )
        )
    return splits


def written(folder: str, name: str, splits: Splits) -> Path:
    return write_version(Path(folder), f"pd1/mini:{name}", splits)


def bits(value: Any) -> Any:
    """Equal exactly where the comparison of values is to find no difference."""
    if isinstance(value, list):
        return [bits(each) for each in value]
    return repr(value) if isinstance(value, float) else value


@pytest.mark.slow
@settings(max_examples=40)
@given(RECORDS, RECORDS)
def test_random_edits_are_found_exactly_and_the_other_way_round(
    a: dict[int, tuple[float, list[float], str]], b: dict[int, tuple[float, list[float], str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        old, new = written(folder, "1.0.0", as_splits(a)), written(folder, "2.0.0", as_splits(b))
        found, back, same = diff_folders(old, new), diff_folders(new, old), diff_folders(old, old)
    assert is_empty(same)
    assert (found.added, found.removed) == (back.removed, back.added)
    assert (found.splits_added, found.splits_removed) == (back.splits_removed, back.splits_added)
    expected_added: dict[tuple[str, str], int] = {}
    for number in b.keys() - a.keys():
        place = (b[number][2], f"t-{number % 2}")
        expected_added[place] = expected_added.get(place, 0) + 1
    assert found.added == expected_added
    expected: dict[tuple[str, str], set[str]] = {}
    for number in a.keys() & b.keys():
        for name, old_value, new_value in zip(
            ("metrics.m", "curves.c", "split"), a[number], b[number], strict=True
        ):
            if bits(old_value) != bits(new_value):
                expected.setdefault((f"t-{number % 2}", name), set()).add(f"trial-{number}")
    assert {(each.task, each.field): each.records for each in found.changed} == {
        place: len(trials) for place, trials in expected.items()
    }
    for each in found.changed:
        assert {example.trial_id for example in each.examples} <= expected[each.task, each.field]
        assert len(each.examples) == min(3, each.records)


@pytest.mark.slow
def test_versions_that_were_really_built(tmp_path: Path) -> None:
    name = "pd1_matched_phase1_results.jsonl"
    content = rows("matched", 1, tasks=TASKS[:2], inputs=4)
    write(tmp_path / "raw", name, content)
    pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path)
    more = copy.deepcopy(content) + rows("matched", 1, tasks=TASKS[2:3], inputs=4)
    write(tmp_path / "raw", name, more)
    pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path, version="1.1.0", parent="1.0.0")
    found = pd1_builder.diff("pd1/mini:1.0.0", "pd1/mini:1.1.0", tmp_path)
    assert found.added == {("matched", "wine-mlp-32"): 4}
    # The block of the matched inputs is another one now: a block is named by its tasks.
    assert found.relations == {"block": 8}
    assert (found.changed, found.bump) == ((), "minor")
    check(found)
