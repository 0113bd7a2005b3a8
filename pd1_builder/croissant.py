"""Croissant metadata: a version described so that machines find and read its Parquet files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mlcroissant as mlc

from pd1_builder.manifest import digest_file
from pipelines.columns import Column, Kind

CROISSANT_NAME = "croissant.json"
_DATA_TYPES: dict[Kind, Any] = {
    "text": mlc.DataType.TEXT,
    "texts": mlc.DataType.TEXT,
    "integer": mlc.DataType.INT64,
    "boolean": mlc.DataType.BOOL,
    "real": mlc.DataType.FLOAT64,
    "reals": mlc.DataType.FLOAT64,
}


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
    """Write `croissant.json`: the Parquet files with their hashes, and a record set for each split.

    Args:
      folder: of the version; its Parquet files are complete.
      dataset: `<name>/<config>`.
      version: semantic version.
      splits: names of the splits.
      columns: of the records.
      description: of the dataset, one paragraph or more.
      citation: how to cite it, as BibTeX.
      licence: address of the licence; empty where it is not known.
    """
    metadata = mlc.Metadata(
        name=dataset.replace("/", "-"),
        description=description,
        cite_as=citation or None,
        license=[licence] if licence else None,
        date_published=datetime.now(UTC),
        version=version,
        distribution=[_file(folder, split) for split in splits],
        record_sets=[_records(split, columns) for split in splits],
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


def _records(split: str, columns: Sequence[Column]) -> mlc.RecordSet:
    return mlc.RecordSet(id=split, name=split, fields=[_field(split, column) for column in columns])


def _field(split: str, column: Column) -> mlc.Field:
    several = column.kind in ("texts", "reals")
    return mlc.Field(
        # An id is a part of an address: it has no blanks, and whose columns these are, they may.
        id=f"{split}/{quote(column.name)}",
        name=column.name,
        description=column.doc,
        data_types=[_DATA_TYPES[column.kind]],
        is_array=True if several else None,
        array_shape="-1" if several else None,
        source=mlc.Source(file_object=f"{split}.parquet", extract=mlc.Extract(column=column.name)),
    )
