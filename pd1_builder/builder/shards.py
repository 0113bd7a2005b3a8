"""Records as TFDS shards, written by Beam from the Parquet files: while a version is built, and on export."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import tensorflow_datasets as tfds
from apache_beam import pvalue
from etils import epath
from hyperbo_pipelines.curate.columns import Column, columns_of
from hyperbo_pipelines.curate.parquet import read_row_groups, row_group_sizes
from hyperbo_pipelines.run.execution import Execution
from tensorflow_datasets.core.file_adapters import ADAPTER_FOR_FORMAT
from tensorflow_datasets.core.splits import SplitDict
from tensorflow_datasets.core.writer import ExampleWriter

from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.installation import require_extras
from hyperbo.storage.paths import StrPath, as_path
from hyperbo.storage.staging import lock, publish, stage
from pd1_builder.builder.features import serialized
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest
from pd1_builder.version.verification import verify

_LOGGER = logging.getLogger(__name__)
_BYTES_OF_SHARD = 64 << 20
_EXPORT_FORMAT = "tfrecord"


@dataclass(frozen=True)
class Shard:
    """One file of a split: where it lies, and which row groups of the Parquet file it holds."""

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

    TFDS's own Beam writer shuffles all examples through memory. Here each worker reads rows that are already
    in order, one row group at a time, from the Parquet files in a folder. `dataset` is its name in the names
    of the shards; `file_format` is one of TFDS, `array_record` or `tfrecord`.

    Returns:
      One `tfds.core.SplitInfo` for each split.

    Raises:
      HyperBOError: a shard does not hold as many rows as it should.
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
            raise HyperBOError(f"{shard.path.name} does not hold the {shard.rows} rows that it should")
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
    # Counted in the file, because a writer in C++ may not report a full disk.
    return str(shard.path), ADAPTER_FOR_FORMAT[file_format].num_examples(path), size


def _report(_: None, path: Path, sizes: Any) -> None:
    write_atomically(path, json.dumps(sorted(sizes)).encode())


def export_tfrecord(
    reference: str, out: StrPath, data_dir: StrPath | None = None, execution: Execution | None = None
) -> Path:
    """Write a version as TFRecord files, for readers that use `tfds.load` and tf.data.

    The records and their order stay the same.

    Args:
      reference: `<name>/<config>:<version>`.
      out: a folder that TFDS can use as `data_dir`. The version is written below it.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      execution: where Beam runs; None for this process.

    Returns:
      The folder `<out>/<name>/<config>/<version>`. It appears when it is complete.

    Raises:
      NotAvailableError: the data folder does not hold the version.
      MissingExtraError: TensorFlow is not installed.
      VersionConflictError: the version is damaged.
      InvalidInputError: the folder exists already.
    """
    version = find(reference, data_dir)
    require_extras("tensorflow", purpose="a TFRecord file")
    target = as_path(out, "out") / version.dataset / version.version
    with lock(target, lambda: _LOGGER.info("%s: another export is running; waiting for it", target)):
        if target.exists():
            raise InvalidInputError(f"{target} exists already", fix="remove it, or export to another folder")
        manifest = verify(f"{version.dataset}:{version.version}", data_dir)
        with stage(target) as staging:
            folder = staging / version.version
            folder.mkdir()
            _write_tfrecord(version.folder, manifest, folder, execution or Execution())
            publish(folder, target)
    return target


def _write_tfrecord(source: Path, manifest: Manifest, folder: Path, execution: Execution) -> None:
    splits, name = tuple(manifest.counts), manifest.dataset.partition("/")[0]
    columns = columns_of(pq.read_schema(source / f"{splits[0]}.parquet"))
    written = write_shards(source, splits, columns, folder, name, _EXPORT_FORMAT, execution)
    # The version's own description tells TFDS that the records have an order.
    info = tfds.builder_from_directory(str(source)).info
    info.set_file_format(_EXPORT_FORMAT, override=True, override_if_initialized=True)
    info.set_splits(SplitDict(written))
    info.write_to_directory(folder)
