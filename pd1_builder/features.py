"""Columns of records as TFDS features, and Arrow tables of records as serialized TFDS examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow_datasets as tfds
from tensorflow_datasets.proto import tf_example_pb2

from pipelines.columns import Column


def tfds_features(columns: Sequence[Column]) -> tfds.features.FeaturesDict:
    """Columns as TFDS features: `<group>.<name>` becomes `{group: {name: ...}}`.

    A plain float64 feature would be stored as float32; bytes keep every bit.
    """

    def feature(column: Column) -> Any:
        match column.kind:
            case "text":
                return tfds.features.Text(doc=column.doc)
            case "texts":
                return tfds.features.Sequence(tfds.features.Text(), doc=column.doc)
            case "integer":
                return tfds.features.Scalar(np.int64, doc=column.doc)
            case "boolean":
                return tfds.features.Scalar(np.bool_, doc=column.doc)
            case "real":
                return tfds.features.Tensor(shape=(), dtype=np.float64, encoding="bytes", doc=column.doc)
            case "reals":
                return tfds.features.Tensor(shape=(None,), dtype=np.float64, encoding="bytes", doc=column.doc)

    return tfds.features.FeaturesDict(nest({column.name: feature(column) for column in columns}))


def serialized(table: pa.Table, columns: Sequence[Column]) -> Iterator[bytes]:
    """The rows of a table of records as the serialized `tf.train.Example`s that `tfds_features` decodes.

    TFDS's own encoder and serializer make the same of them, and take up to eight times as long: they look at
    every value of every row to find out what the column's kind tells of all.
    """
    values = [_encoded(table[column.name], column) for column in columns]
    names = [column.name.replace(".", "/", 1) for column in columns]
    make = vars(tf_example_pb2)["Example"]
    for row in zip(*values, strict=True):
        example: Any = make()
        feature = example.features.feature
        for name, column, value in zip(names, columns, row, strict=True):
            match column.kind:
                case "integer" | "boolean":
                    feature[name].int64_list.value.append(value)
                case "texts":
                    feature[name].bytes_list.value.extend(value)
                case _:
                    feature[name].bytes_list.value.append(value)
        yield example.SerializeToString()


def _encoded(chunked: pa.ChunkedArray, column: Column) -> Sequence[Any]:
    array: Any = pa.concat_arrays(chunked.chunks)
    match column.kind:
        case "text":
            return array.cast(pa.binary()).to_pylist()
        case "texts":
            return array.cast(pa.list_(pa.binary())).to_pylist()
        case "integer" | "boolean":
            return array.cast(pa.int64()).to_pylist()
        case "real":
            return _cut(array.to_numpy(), np.arange(len(array) + 1))
        case "reals":
            return _cut(array.flatten().to_numpy(), np.concatenate([[0], np.cumsum(array.value_lengths())]))


def _cut(values: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    """The bytes, little endian, of the numbers between offsets."""
    content = values.astype("<f8").tobytes()
    ends = (offsets * 8).tolist()
    return [content[start:end] for start, end in itertools.pairwise(ends)]


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Group names at their first dot.

    >>> nest({"task": 1, "x.power": 2, "x.momentum": 3})
    {'task': 1, 'x': {'power': 2, 'momentum': 3}}
    """
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        group, dot, inner = name.partition(".")
        if dot:
            nested.setdefault(group, {})[inner] = value
        else:
            nested[name] = value
    return nested
