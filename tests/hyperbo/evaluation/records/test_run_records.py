import pathlib

import numpy as np
import pandas as pd
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.metadata import (
    check_records_belong,
    minimised,
    read_metadata,
    validate_metadata,
    write_metadata,
)
from hyperbo.evaluation.records.run_array import arrange_records, comparable, missing_arms
from hyperbo.evaluation.records.runs import COLUMNS, read_records, validate_records, write_records


def test_records_survive_a_file(tmp_path, records):
    path = tmp_path / "new" / "records.parquet"
    write_records(records, path)
    pd.testing.assert_frame_equal(read_records(path), records)
    assert [p.name for p in path.parent.iterdir()] == ["records.parquet"]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, records, monkeypatch):
    path = tmp_path / "records.parquet"
    write_records(records, path)
    before = path.read_bytes()

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(pathlib.Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_records(records.iloc[::-1], path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["records.parquet"]


@pytest.mark.parametrize("content", [None, b"", b"not parquet at all"])
def test_an_unreadable_file_is_named(tmp_path, content):
    path = tmp_path / "records.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"records\.parquet: run records cannot be read"):
        read_records(path)


def _set(column, row, value):
    def change(records):
        records.loc[row, column] = value
        return records

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.drop(columns=["y", "seed"]), "columns missing: seed, y"),
        (lambda r: r.assign(seed=r["seed"].astype(float)), "column seed has type float64"),
        (lambda r: r.assign(y=r["y"].astype(str)), "column y has type str"),
        (lambda r: r.assign(method=1), "column method has type int64"),
        (lambda r: r.iloc[:0], "no row"),
        (_set("task", 3, None), "row 3 .*a name, seed or iteration is missing"),
        (_set("y", 7, np.nan), r"row 7 \(method H-NLL, task digits-cnn-32, seed 0, iteration 8\): y is not"),
        (_set("objective", 7, np.inf), "row 7 .*: objective is not finite"),
        (_set("iteration", 0, 0), "row 0 .*iteration is below 1"),
        (_set("iteration", 4, 6), "row 4 .*row 5 .*more than once"),
        (_set("y_max", 5, 100.0), "row 0 .* and 597 more: the task has more than one y_max"),
        (_set("task_dataset", 5, "wine"), "the task has more than one task_dataset"),
        (_set("y", 5, 50.0), "row 5 .*: y is above y_max"),
        (lambda r: r.drop(index=4), "row 0 .* and 26 more: the run lacks an iteration"),
    ],
)
def test_bad_records_are_refused_by_row(records, change, message):
    with pytest.raises(InvalidInputError, match=message):
        validate_records(change(records))


def test_row_numbers_do_not_depend_on_the_index(records):
    records = records.set_axis(records.index[::-1])
    records.iloc[7, records.columns.get_loc("y")] = np.nan
    with pytest.raises(InvalidInputError, match="row 7 "):
        validate_records(records)


def test_other_columns_are_kept(tmp_path, records):
    write_records(records.assign(acquisition=0.5)[["acquisition", *COLUMNS]], tmp_path / "r.parquet")
    assert list(read_records(tmp_path / "r.parquet").columns) == [*COLUMNS, "acquisition"]


def failure(**changes):
    return {"method": "STBO", "task": "easy", "seed": 3, "reason": "no memory"} | changes


def test_optional_metadata_survive_a_file(tmp_path, metadata):
    metadata["objective"] = {"name": "accuracy", "direction": "maximize"}
    metadata["flat_tasks"] = ["a task that only trains"]
    metadata["failures"] = [failure()]
    write_metadata(metadata, tmp_path / "metadata.json")
    again = read_metadata(tmp_path / "metadata.json")
    assert again == metadata
    assert not minimised(again)
    del again["objective"]
    assert minimised(again)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": [0, 0]}, "seeds: 0 is there twice"),
        ({"tasks": []}, r"tasks: \[\] is refused"),
        ({"iterations": 0}, "iterations: 0 is refused"),
        ({"mood": "good"}, "unknown key 'mood'"),
        ({"methods": {"Rand": {"size": float("nan")}}}, "not plain JSON"),
        ({"objective": {"name": "error", "direction": "down"}}, "direction: 'down'"),
        ({"flat_tasks": [3]}, r"flat_tasks\[0\]: 3 is not text"),
        ({"failures": [{"method": "STBO"}]}, r"failures\[0\]\.task: the field is missing"),
        ({"failures": [failure(method="MAF")]}, r"failures\[0\]\.method: 'MAF' is not one of the methods"),
        ({"failures": [failure(seed=9)]}, r"failures\[0\]\.seed: 9 is not one of the seeds"),
        ({"failures": [failure(reason="")]}, r"failures\[0\]\.reason: '' is refused"),
        ({"seconds": {"evaluate": {"H-NLL": float("nan")}}}, "seconds.evaluate.H-NLL: nan"),
        ({"total_seconds": {"evaluate": -1.0}}, "total_seconds.evaluate: -1.0 is refused"),
        ({"regret": "large"}, "regret: 'large' is refused: .*'simple' or 'normalised'"),
    ],
)
def test_bad_metadata_is_refused(tmp_path, metadata, change, message):
    with pytest.raises(InvalidInputError, match=message):
        write_metadata(metadata | change, tmp_path / "metadata.json")
    assert not list(tmp_path.iterdir())


def test_metadata_without_keys_and_unreadable_metadata_are_refused(tmp_path, metadata):
    del metadata["manifest_hash"], metadata["command"]
    with pytest.raises(InvalidInputError, match="manifest_hash: the field is missing"):
        validate_metadata(metadata)
    for text, message in (("{", "cannot be read"), ("[]", r"m\.json: \[\] is not a table")):
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            read_metadata(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": {"H-NLL": {}, "Rand": {}}}, "method not named in the metadata: H-EKL, STBO"),
        ({"tasks": ["easy"]}, "task not named in the metadata: digits"),
        ({"seeds": [0, 1]}, "seed not named in the metadata: 2, 3, 4"),
        ({"iterations": 29}, "iteration 30 is beyond the 29"),
    ],
)
def test_records_of_another_evaluation_are_refused(records, metadata, change, message):
    with pytest.raises(InvalidInputError, match=message):
        check_records_belong(records, metadata | change)


def test_the_array_holds_each_record_at_its_place(records, metadata):
    shuffled = records.sample(frac=1.0, random_state=1)
    array = arrange_records(shuffled, "y", metadata)
    assert array.values.shape == (4, 6, 5, 30)
    for record in records.iloc[::37].itertuples():
        place = (
            array.methods.index(record.method),
            array.tasks.index(record.task),
            array.seeds.index(record.seed),
            record.iteration - 1,
        )
        assert array.values[place] == record.y


def test_missing_arms_are_named_and_left_out(with_missing_arm, metadata):
    array = arrange_records(with_missing_arm, "y", metadata)
    assert [str(arm) for arm in missing_arms(array)] == [
        "STBO on digits-cnn-64, seed 1",
        "STBO on wine-mlp-16, seed 3",
    ]
    compared = comparable(array)
    assert compared.methods == array.methods
    assert compared.tasks == ("digits-cnn-32", "digits-cnn-128", "text-transformer-8", "easy")
    np.testing.assert_array_equal(compared.values, array.values[:, [0, 2, 4, 5]])
    with pytest.raises(InvalidInputError, match="runs are missing: STBO on digits-cnn-64, seed 1"):
        array.require_complete()


def test_a_method_without_a_completed_task_is_left_out_first(records, metadata):
    array = arrange_records(records[records["method"] != "H-EKL"], "y", metadata)
    assert comparable(array).methods == ("H-NLL", "STBO", "Rand")
    assert comparable(array).tasks == array.tasks
    assert len(missing_arms(array)) == 6


def test_nothing_in_common_is_an_error(records, metadata):
    easy = records["task"] == "easy"
    array = arrange_records(records[easy == (records["method"] == "STBO")], "y", metadata)
    with pytest.raises(InvalidInputError, match="no task was completed by all methods"):
        comparable(array)


def test_unknown_names_and_iterations_are_refused(records, metadata):
    array = arrange_records(records, "y", metadata)
    with pytest.raises(InvalidInputError, match="no method 'FSBO'; use one of H-NLL"):
        array.select(["FSBO"], array.tasks)
    for iteration in (0, 31):
        with pytest.raises(InvalidInputError, match="use 1 to 30"):
            array.at(iteration)
