"""Columns of records in the formats of others: as TFDS features and examples, and as Croissant fields."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mlcroissant as mlc
import numpy as np
import pyarrow as pa
import tensorflow_datasets as tfds
from hyperbo_pipelines.curate.columns import Column, Kind
from tensorflow_datasets.proto import tf_example_pb2

from pd1_builder.version.manifest import digest_file

CROISSANT_NAME = "croissant.json"
_DATA_TYPES: dict[Kind, Any] = {
    "text": mlc.DataType.TEXT,
    "texts": mlc.DataType.TEXT,
    "integer": mlc.DataType.INT64,
    "boolean": mlc.DataType.BOOL,
    "real": mlc.DataType.FLOAT64,
    "reals": mlc.DataType.FLOAT64,
}


def tfds_features(columns: Sequence[Column]) -> tfds.features.FeaturesDict:
    """Columns as TFDS features. A column `<group>.<name>` becomes `{group: {name: ...}}`.

    TFDS would store a plain float64 feature as float32. The encoding as bytes keeps every bit.
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
    """The rows of a table of records as serialized `tf.train.Example`s, which `tfds_features` decodes.

    TFDS's own encoder gives the same bytes, but takes up to eight times as long: it inspects every value of
    every row, where the kind of the column already tells the type.
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
    """The bytes of the numbers between consecutive offsets, little endian."""
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


def write_croissant(
    folder: Path,
    dataset: str,
    version: str,
    splits: Sequence[str],
    columns: Sequence[Column],
    *,
    description: str,
    citation: str,
    licence: str,
) -> None:
    """Write `croissant.json`, by which machines find and read the Parquet files of a version.

    It lists the files, which are complete, with their hashes, and a record set for each split. `citation` is
    BibTeX, `licence` an address; each is empty if it is not known.
    """
    metadata = mlc.Metadata(
        name=dataset.replace("/", "-"),
        description=description,
        cite_as=citation or None,
        license=[licence] if licence else None,
        date_published=datetime.now(UTC),
        version=version,
        distribution=[_file(folder, split) for split in splits],
        record_sets=[
            mlc.RecordSet(id=split, name=split, fields=[_field(split, column) for column in columns])
            for split in splits
        ],
    )
    text = json.dumps(metadata.to_json(), indent=2, default=str)
    (folder / CROISSANT_NAME).write_text(text + "\n", encoding="utf-8")


def _file(folder: Path, split: str) -> mlc.FileObject:
    digest = digest_file(folder / f"{split}.parquet", folder)
    return mlc.FileObject(
        id=digest.name,
        name=digest.name,
        content_url=digest.name,
        content_size=f"{digest.size} B",
        encoding_formats=["application/x-parquet"],
        sha256=digest.sha256,
    )


def _field(split: str, column: Column) -> mlc.Field:
    several = column.kind in ("texts", "reals")
    return mlc.Field(
        # An id is part of an address and must not hold blanks, but the name of a user's column may.
        id=f"{split}/{quote(column.name)}",
        name=column.name,
        description=column.doc,
        data_types=[_DATA_TYPES[column.kind]],
        is_array=True if several else None,
        array_shape="-1" if several else None,
        source=mlc.Source(file_object=f"{split}.parquet", extract=mlc.Extract(column=column.name)),
    )
