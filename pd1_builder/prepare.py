"""Writing a version's files into a staging folder: TFDS shards by Beam, then Parquet beside them."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow_datasets as tfds
from apache_beam import pvalue
from apache_beam.options.pipeline_options import PipelineOptions

from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.search_space import SearchSpace
from pd1_builder.content_hash import CANONICAL_ORDER, content_hash
from pd1_builder.features import tfds_features, to_table
from pd1_builder.manifest import declared
from pd1_builder.pd1.pd1_dataset_builder import PD1_COLUMNS, Builder
from pipelines.build import CurateTrials, CurationOptions, check_rejects
from pipelines.records import RawFile, Reject
from pipelines.summarize import Summary

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Prepared:
    """A version's files but for the manifest: their folder, what they hold, how it was derived."""

    folder: Path
    summary: Summary
    content_hash: str
    search_space: SearchSpace
    parameters: dict[str, Any]


def prepare(
    config: str,
    version: str,
    raw_files: Sequence[RawFile],
    staging: Path,
    *,
    max_reject_share: float,
    running_mode: str,
    workers: int,
) -> Prepared:
    """Build PD1 into a staging folder.

    Raises:
      InvalidInputError: too many rows are rejected, or all rows of a split.
      HyperBOError: rows were lost on the way.
    """
    reports = staging / "reports"
    reports.mkdir()
    builder = Builder(
        config=config,
        version=version,
        data_dir=staging,
        raw_files=raw_files,
        max_reject_share=max_reject_share,
        report=functools.partial(_write_report, reports),
        file_format="array_record",
    )
    arguments = [f"--direct_running_mode={running_mode}", f"--direct_num_workers={workers}"]
    tfds.disable_progress_bar()
    try:
        # TFDS announces on stdout a folder that will not stay.
        with contextlib.redirect_stdout(io.StringIO()):
            builder.download_and_prepare(
                download_config=tfds.download.DownloadConfig(
                    # Named, because Beam's default would first try to download another.
                    beam_runner="FnApiRunner",
                    beam_options=PipelineOptions(arguments),
                    try_download_gcs=False,
                )
            )
    except Exception:
        # TFDS refuses an empty split with a trace that names no cause; the curation alone finds it.
        _curate(raw_files, builder.options, reports)
        _check(*_read_report(reports), raw_files, max_reject_share)
        raise
    summary, rejects = _read_report(reports)
    _check(summary, rejects, raw_files, max_reject_share)
    folder = Path(builder.data_dir)
    (reports / "rejects.jsonl").rename(folder / "rejects.jsonl")
    options = vars(builder.options).copy()
    space = options.pop("search_space")
    hashed = _write_parquet(builder, folder, summary, declared(space, options))
    return Prepared(folder, summary, hashed, space, options)


def _curate(raw_files: Sequence[RawFile], options: CurationOptions, reports: Path) -> None:
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        curated = (
            pipeline | "RawFiles" >> beam.Create(list(raw_files)) | "CurateTrials" >> CurateTrials(options)
        )
        rejects = pvalue.AsList(curated.rejects)
        _ = curated.summary | beam.Map(functools.partial(_write_report, reports), rejects)


def _write_report(folder: Path, summary: Summary, rejects: list[Reject]) -> None:
    ordered = sorted(rejects, key=lambda reject: (reject.file, reject.line))
    lines = [json.dumps(asdict(reject)) + "\n" for reject in ordered]
    (folder / "rejects.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(asdict(summary)), encoding="utf-8")


def _read_report(folder: Path) -> tuple[Summary, list[Reject]]:
    summary = Summary(**json.loads((folder / "summary.json").read_text(encoding="utf-8")))
    lines = (folder / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
    return summary, [Reject(**json.loads(line)) for line in lines]


def _check(
    summary: Summary, rejects: Sequence[Reject], raw_files: Sequence[RawFile], max_reject_share: float
) -> None:
    check_rejects(summary, rejects, max_reject_share)
    rows = sum(file.rows for file in raw_files)
    if summary.records() + summary.rejects != rows:
        raise HyperBOError(
            f"rows were lost: of {rows}, {summary.records()} became records, {summary.rejects} rejects"
        )
    for split in {file.split for file in raw_files if file.rows}:
        if summary.records(split) == 0:
            raise InvalidInputError(
                f"every row of the split {split!r} was rejected", fix="mend or remove its files"
            )


def _write_parquet(builder: Builder, folder: Path, summary: Summary, identity: Mapping[str, Any]) -> str:
    """Write one Parquet file per split, read back from the TFDS files; return the content hash."""
    for split in summary.counts:
        size = builder.info.splits[split].num_examples
        if size != summary.records(split):
            raise HyperBOError(f"split {split}: {summary.records(split)} records, {size} in its files")

    def written(split: str) -> Iterator[pa.Table]:
        with contextlib.ExitStack() as stack:
            writer = None
            for table in read_tfds(builder, split):
                if writer is None:
                    path = folder / f"{split}.parquet"
                    writer = stack.enter_context(pq.ParquetWriter(path, table.schema, compression="zstd"))
                writer.write_table(table)
                yield table

    return content_hash(identity, {split: written(split) for split in summary.counts})


def read_tfds(builder: Any, split: str) -> Iterator[pa.Table]:
    """Read a split of PD1 from its TFDS files in `CANONICAL_ORDER`, some rows at a time.

    Args:
      builder: a TFDS builder whose files are written.
      split: name of the split.

    Yields:
      Arrow tables of the rows, in order.
    """
    # The keys are read first, and alone: records in order then need no more memory than the rows at once.
    key_features = tfds_features([column for column in PD1_COLUMNS if column.name in CANONICAL_ORDER])
    raw = builder.as_data_source(split, deserialize_method=tfds.decode.DeserializeMethod.RAW_BYTES)
    keys = [_key(key_features.deserialize_example_np(example)) for example in raw]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    source = builder.as_data_source(split)
    for start in range(0, len(order), _ROWS_AT_ONCE):
        yield to_table(source.__getitems__(order[start : start + _ROWS_AT_ONCE]), PD1_COLUMNS)


def _key(example: Any) -> tuple[Any, ...]:
    return tuple(example[name] for name in CANONICAL_ORDER)
