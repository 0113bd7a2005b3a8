from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hyperbo_pipelines.curate.columns import ARROW_TYPES, Column, columns_of, schema
from hyperbo_pipelines.curate.layout import Layout
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.trial import Trial

SPACE = SearchSpace((Parameter("rate", 1e-3, 1.0, "log"), Parameter("depth", 1.0, 9.0)))
LAYOUT = Layout(SPACE, ("loss", "test/loss"), ("curve",), model=True)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
FIELDS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("task", "task_dataset", "trial_id", "split", "origin", "source", "input_id"), TEXT),
        "phase": st.integers(0, 2**31 - 1),
        "status": st.sampled_from(["done", "diverged", "infeasible"]),
        "hyperparameters": st.fixed_dictionaries({name: st.floats() for name in SPACE.names}),
        "metrics": st.fixed_dictionaries({"loss": st.floats(), "test/loss": st.floats()}),
        "curves": st.dictionaries(st.just("curve"), st.lists(st.floats(), max_size=4).map(tuple)),
        "model": TEXT,
        "batch_size": st.integers(0, 10**12),
    }
)


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@given(st.lists(FIELDS, max_size=5))
def test_a_table_holds_what_trials_recorded_bit_for_bit(drawn: list[dict[str, Any]]) -> None:
    trials = [Trial(**fields) for fields in drawn]
    table = LAYOUT.raw_table(trials)
    assert len(table) == len(trials)
    for name in ("task", "trial_id", "source", "phase", "status", "diverged", "input_id", "batch_size"):
        assert table[name].to_pylist() == [getattr(trial, name) for trial in trials]
    for name in SPACE.names:
        assert bits(table[f"hyperparameters.{name}"].to_numpy()) == bits(
            trial.hyperparameters[name] for trial in trials
        )
    for name in LAYOUT.metrics:
        assert bits(table[f"metrics.{name}"].to_numpy()) == bits(trial.metrics[name] for trial in trials)
    curves = [bits(values) for values in table["curves.curve"].to_pylist()]
    assert curves == [bits(trial.curves.get("curve", ())) for trial in trials]
    assert not any(column.null_count for column in table.columns)


def test_a_table_has_all_columns_but_those_derived_later() -> None:
    derived = {"duplicates", "block", "y", "x.rate", "x.depth"}
    types = {column.name: ARROW_TYPES[column.kind] for column in LAYOUT.columns}
    table = LAYOUT.raw_table([])
    assert set(types) - set(table.column_names) == derived
    assert all(table.schema.field(name).type == types[name] for name in table.column_names)


def test_columns_come_in_one_order_and_only_where_the_layout_has_them() -> None:
    extra = Column("note", "text", "of this dataset alone")
    names = [column.name for column in Layout(SPACE, ("loss",), extra=(extra,)).columns]
    assert names == [
        *("task", "task_dataset", "trial_id", "phase", "origin", "source", "status", "diverged", "input_id"),
        *("duplicates", "block", "note", "y"),
        *("hyperparameters.rate", "hyperparameters.depth", "x.rate", "x.depth", "metrics.loss"),
    ]


COLUMNS = st.lists(
    st.builds(Column, TEXT, st.sampled_from(sorted(ARROW_TYPES)), TEXT), unique_by=lambda column: column.name
)


@given(COLUMNS)
def test_an_arrow_schema_gives_its_columns_back(columns: list[Column]) -> None:
    made = schema(columns)
    assert columns_of(made) == tuple(columns)
    assert not any(field.nullable for field in made)


def test_a_schema_takes_no_null_silently() -> None:
    table = pa.table({"y": pa.array([1.0, None])})
    with pytest.raises(ValueError, match="null"):
        table.cast(schema([Column("y", "real", "")]))
