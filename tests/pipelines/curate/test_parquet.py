from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hyperbo_pipelines.curate.columns import Column, columns_of, schema
from hyperbo_pipelines.curate.parquet import read_row_groups, row_group_sizes, write_row_groups
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = (
    Column("task", "text", "a text"),
    Column("others", "texts", "some texts"),
    Column("phase", "integer", "a number"),
    Column("diverged", "boolean", "yes or no"),
    Column("y", "real", "a float"),
    Column("curves.loss", "reals", "floats"),
)
ROW = st.fixed_dictionaries(
    {
        "task": st.text(st.characters(codec="utf-8"), max_size=5),
        "others": st.lists(st.text(st.characters(codec="utf-8"), max_size=2), max_size=2),
        "phase": st.integers(-(2**63), 2**63 - 1),
        "diverged": st.booleans(),
        "y": st.floats(),
        "curves.loss": st.lists(st.floats(), max_size=3),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parquet")


@given(st.lists(ROW, min_size=1, max_size=6), st.lists(st.integers(0, 6), max_size=2))
def test_each_table_is_a_row_group_and_comes_back_as_it_was(
    folder: Path, rows: list[dict[str, object]], cuts: list[int]
) -> None:
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [rows[start:end] for start, end in pairwise(edges)]
    tables = [pa.Table.from_pylist(piece, schema=schema(COLUMNS)) for piece in pieces]
    path = folder / "a.parquet"
    passed_on = list(write_row_groups(iter(tables), path))
    assert all(one is other for one, other in zip(passed_on, tables, strict=True))
    found = [table.to_pylist() for table in read_row_groups(path)]
    # In repr NaN equals NaN, and no two floats are spelled alike.
    assert repr(found) == repr([table.to_pylist() for table in tables])
    assert [group.rows for group in row_group_sizes(path)] == [len(piece) for piece in pieces]
    assert columns_of(pq.read_schema(path)) == COLUMNS


def numbers(*lengths: int) -> Iterator[pa.Table]:
    start = 0
    for length in lengths:
        yield pa.table({"n": list(range(start, start + length))})
        start += length


def test_some_row_groups_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert sum(len(table) for table in write_row_groups(numbers(3, 2, 4), path)) == 9
    assert [table["n"].to_pylist() for table in read_row_groups(path, 1, 1)] == [[3, 4]]
    assert [len(table) for table in read_row_groups(path, 1)] == [2, 4]
    assert list(read_row_groups(path, 1, 0)) == []
    assert [group.rows for group in row_group_sizes(path)] == [3, 2, 4]
    assert all(group.size > 0 for group in row_group_sizes(path))


def test_large_tables_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    # Arrow's own limit would be 1,048,576 rows.
    list(write_row_groups(numbers(1_100_000), path))
    assert [group.rows for group in row_group_sizes(path)] == [1_100_000]


def test_a_file_has_null_for_nan_and_states_bounds_and_nulls(tmp_path: Path) -> None:
    row = {"task": "a", "others": [], "phase": 1, "diverged": True, "y": 1.0, "curves.loss": [math.nan, 2.0]}
    rows = [row, row | {"y": math.nan}]
    list(write_row_groups([pa.Table.from_pylist(rows, schema=schema(COLUMNS))], tmp_path / "a.parquet"))
    stored = pq.read_table(tmp_path / "a.parquet")
    assert stored["y"].to_pylist() == [1.0, None]
    assert stored["curves.loss"].to_pylist() == [[None, 2.0]] * 2
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    (y,) = (
        group.column(index) for index in range(group.num_columns) if group.column(index).path_in_schema == "y"
    )
    assert (y.statistics.min, y.statistics.max, y.statistics.null_count) == (1.0, 1.0, 1)


def test_a_file_of_an_earlier_release_has_nan_and_is_read_alike(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"y": math.nan}, {"y": 2.0}], schema=schema(COLUMNS[4:5]))
    pq.write_table(table, tmp_path / "old.parquet")
    list(write_row_groups([table], tmp_path / "new.parquet"))
    old, new = (next(read_row_groups(tmp_path / f"{name}.parquet")) for name in ("old", "new"))
    assert repr(old.to_pydict()) == repr(new.to_pydict()) == "{'y': [nan, 2.0]}"
    assert old.schema == new.schema == table.schema


def test_a_source_that_fails_leaves_the_file_closed(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield from numbers(3)
        raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        list(write_row_groups(broken(), tmp_path / "a.parquet"))
    assert [len(table) for table in read_row_groups(tmp_path / "a.parquet")] == [3]
