"""Serialized examples against TFDS's own encoder and serializer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_datasets.core.example_serializer import ExampleSerializer
from tensorflow_datasets.proto import tf_example_pb2

from pd1_builder.features import nest, serialized, tfds_features
from pipelines.columns import Column, schema

COLUMNS = (
    Column("task", "text", "a text"),
    Column("others", "texts", "some texts"),
    Column("phase", "integer", "a number"),
    Column("diverged", "boolean", "yes or no"),
    Column("metrics.best_valid/error_rate", "real", "a float"),
    Column("curves.valid.loss", "reals", "floats"),
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
ROW = st.fixed_dictionaries(
    {
        "task": TEXT,
        "others": st.lists(TEXT, max_size=3),
        "phase": st.integers(-(2**63), 2**63 - 1),
        "diverged": st.booleans(),
        "metrics.best_valid/error_rate": st.floats(),
        "curves.valid.loss": st.lists(st.floats(), max_size=4),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4), st.integers(1, 3))
def test_the_examples_are_those_of_tfds(rows: list[dict[str, Any]], rows_of_chunk: int) -> None:
    whole = pa.Table.from_pylist(rows, schema=schema(COLUMNS))
    # A table may come in several chunks, each with an offset into a larger one.
    table = pa.Table.from_batches(whole.to_batches(max_chunksize=rows_of_chunk))
    features = tfds_features(COLUMNS)
    specs: Any = features.get_serialized_info()
    serializer = ExampleSerializer(specs)
    for row, content in zip(rows, serialized(table, COLUMNS), strict=True):
        plain = row | {"curves.valid.loss": np.array(row["curves.valid.loss"], np.float64)}
        expected = serializer.serialize_example(features.encode_example(nest(plain)))
        parse = tf_example_pb2.Example.FromString
        assert parse(content) == parse(expected)
        decoded = features.deserialize_example_np(content)
        assert repr(decoded["metrics"]["best_valid/error_rate"].item()) == repr(
            row["metrics.best_valid/error_rate"]
        )
