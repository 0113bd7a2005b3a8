"""Writing the records of a version as TFDS shards, by Beam, from its Parquet files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import tensorflow_datasets as tfds
from apache_beam import pvalue
from etils import epath
from tensorflow_datasets.core.file_adapters import ADAPTER_FOR_FORMAT
from tensorflow_datasets.core.writer import ExampleWriter

from hyperbo.errors import HyperBOError
from hyperbo.files import write_atomically
from pd1_builder.features import serialized
from pipelines.columns import Column
from pipelines.execution import Execution
from pipelines.parquet import read_row_groups, row_group_sizes

_BYTES_OF_SHARD = 64 << 20


@dataclass(frozen=True)
class Shard:
    """One file of a split: which row groups of the Parquet file it holds, and where it goes."""

    split: str
    parquet: Path
    first: int
    groups: int
    rows: int
    path: Path
    file_format: str


def write_shards(
    parquet: Path,
    splits: Sequence[str],
    columns: Sequence[Column],
    folder: Path,
    dataset: str,
    file_format: str,
    execution: Execution,
) -> list[Any]:
    """Write the splits of a version as TFDS shards, in the order of its records.

    TFDS's own Beam writer shuffles all examples through memory; here each worker reads rows that are in order
    already, a row group at a time.

    Args:
      parquet: folder of the Parquet files.
      splits: names of the splits.
      columns: of the records.
      folder: where the shards go.
      dataset: name in the names of the files.
      file_format: of TFDS, `array_record` or `tfrecord`.
      execution: where Beam runs.

    Returns:
      One `tfds.core.SplitInfo` for each split.

    Raises:
      HyperBOError: a shard holds another number of rows than the Parquet file.
    """
    templates = {
        split: tfds.core.ShardedFileTemplate(
            data_dir=epath.Path(folder), dataset_name=dataset, split=split, filetype_suffix=file_format
        )
        for split in splits
    }
    planned = [
        shard
        for split, template in templates.items()
        for shard in plan_shards(split, parquet / f"{split}.parquet", template, file_format)
    ]
    report = folder / "shards.json"

    def pipeline(root: Any) -> Any:
        sizes = (
            root
            | "Shards" >> beam.Create(planned)
            | "Spread" >> beam.Reshuffle()
            | "WriteShard" >> beam.Map(_write_shard, tuple(columns))
        )
        return (
            root | "Once" >> beam.Create([None]) | "Report" >> beam.Map(_report, report, pvalue.AsIter(sizes))
        )

    execution.run(pipeline)
    written = {path: (rows, size) for path, rows, size in json.loads(report.read_text(encoding="utf-8"))}
    report.unlink()
    for shard in planned:
        if written.get(str(shard.path), (0, 0))[0] != shard.rows:
            raise HyperBOError(f"{shard.path.name} does not hold the {shard.rows} rows it should")
    return [
        tfds.core.SplitInfo(
            name=split,
            shard_lengths=[shard.rows for shard in planned if shard.split == split],
            num_bytes=sum(written[str(shard.path)][1] for shard in planned if shard.split == split),
            filename_template=template,
        )
        for split, template in templates.items()
    ]


def plan_shards(split: str, parquet: Path, template: Any, file_format: str) -> list[Shard]:
    """Cut a split into shards of whole row groups, each of about 64 MiB before compression."""
    cuts, size = [0], 0
    groups = row_group_sizes(parquet)
    for index, group in enumerate(groups):
        size += group.size
        if size >= _BYTES_OF_SHARD and index + 1 < len(groups):
            cuts.append(index + 1)
            size = 0
    cuts.append(len(groups))
    return [
        Shard(
            split=split,
            parquet=parquet,
            first=first,
            groups=last - first,
            rows=sum(group.rows for group in groups[first:last]),
            path=Path(template.sharded_filepath(shard_index=index, num_shards=len(cuts) - 1)),
            file_format=file_format,
        )
        for index, (first, last) in enumerate(itertools.pairwise(cuts))
    ]


def _write_shard(shard: Shard, columns: Sequence[Column]) -> tuple[str, int, int]:
    rows = size = 0

    def numbered() -> Iterator[tuple[int, bytes]]:
        nonlocal rows, size
        for table in read_row_groups(shard.parquet, shard.first, shard.groups):
            for content in serialized(table, columns):
                yield rows, content
                rows, size = rows + 1, size + len(content)

    path, file_format = epath.Path(shard.path), tfds.core.FileFormat(shard.file_format)
    ExampleWriter(file_format).write(path, numbered())
    # Counted in the file: a writer in C++ may say nothing of a disk that was full.
    return str(shard.path), ADAPTER_FOR_FORMAT[file_format].num_examples(path), size


def _report(_: None, path: Path, sizes: Any) -> None:
    write_atomically(path, json.dumps(sorted(sizes)).encode())
