from __future__ import annotations

import math
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pd1_builder.version.content_hash import content_hash

TABLE = pa.table(
    {
        "task": ["a", "b", "", "long name"],
        "phase": [0, 1, 1, 0],
        "diverged": [True, False, False, True],
        "metrics.m": [0.1, math.nan, -0.0, 1e300],
        "curves.c": pa.array([[0.5, math.nan], [], [1.0], [2.0, 3.0, 4.0]]),
        "duplicates": pa.array([["x", "y"], [], ["xy"], [""]]),
        "source": ["f:1", "f:2", "f:3", "f:4"],
        "y": [1.0, 2.0, 3.0, 4.0],
        "x.power": [0.1, 0.2, 0.3, 0.4],
    }
)
BASE = content_hash({}, {"matched": [TABLE]})


def with_column(name: str, values: object) -> pa.Table:
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))


@given(st.lists(st.integers(0, len(TABLE)), max_size=4))
def test_the_cut_into_tables_does_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TABLE)]
    pieces = [TABLE.slice(start, end - start) for start, end in pairwise(edges)]
    assert content_hash({}, {"matched": pieces}) == BASE


@pytest.mark.parametrize(
    "changed",
    [
        with_column("task", ["a", "b", "l", "ong name"]),
        with_column("phase", [0, 1, 1, 1]),
        with_column("diverged", [True, False, True, True]),
        with_column("metrics.m", [math.nextafter(0.1, 1), math.nan, -0.0, 1e300]),
        with_column("metrics.m", [0.1, math.nan, 0.0, 1e300]),
        with_column("curves.c", [[0.5], [math.nan], [1.0], [2.0, 3.0, 4.0]]),
        with_column("duplicates", [["x"], ["y"], ["xy"], [""]]),
        with_column("duplicates", [["x", "y"], [], ["xy"], []]),
        TABLE.rename_columns(["task2", *TABLE.column_names[1:]]),
        TABLE.slice(0, 3),
        TABLE.take([1, 0, 2, 3]),
    ],
)
def test_any_changed_fact_changes_the_hash(changed: pa.Table) -> None:
    assert content_hash({}, {"matched": [changed]}) != BASE


def test_split_and_declaration_count() -> None:
    assert content_hash({}, {"unmatched": [TABLE]}) != BASE
    assert content_hash({"warping": "identity"}, {"matched": [TABLE]}) != BASE


def test_source_and_derived_columns_and_nan_payloads_do_not_count() -> None:
    (other_nan,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))
    values = np.array([0.1, other_nan, -0.0, 1e300])
    for changed in (
        with_column("source", ["g:1"] * 4),
        with_column("y", [0.0] * 4),
        with_column("x.power", [0.0] * 4),
        with_column("metrics.m", values),
    ):
        assert content_hash({}, {"matched": [changed]}) == BASE


def test_nulls_are_refused() -> None:
    with pytest.raises(ValueError, match="no nulls"):
        content_hash({}, {"matched": [with_column("metrics.m", [None, 1.0, 1.0, 1.0])]})
