from __future__ import annotations

from pathlib import Path

from version_folders import record, write_version

from pd1_builder.version.stored_records import StoredRecords


def test_columns_are_those_of_all_splits_and_no_file_stays_open(tmp_path: Path) -> None:
    splits = {"one": [record("a", "a/0"), record("a", "a/1")], "two": [record("b", "b/0")]}
    folder = write_version(tmp_path, "pd1/mini:1.0.0", splits)
    records = StoredRecords(folder)
    assert records.splits == ("one", "two")
    assert records.column("split").to_pylist() == ["one", "one", "two"]
    assert records.column("task").to_pylist() == ["a", "a", "b"]
    assert records.column_types()["phase"] == "int64"
    opened = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.is_relative_to(tmp_path)] == []
