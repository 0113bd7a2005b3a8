"""CuratedBuilder, the base of the TFDS builders: it turns raw files into records, and these into shards."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import pyarrow as pa
import tensorflow_datasets as tfds
from hyperbo_pipelines.curate.assemble import Assembly, assemble
from hyperbo_pipelines.curate.build import SUMMARY_NAME
from hyperbo_pipelines.curate.elements import Block
from hyperbo_pipelines.curate.parquet import write_row_groups
from hyperbo_pipelines.curate.summarize import Summary, read_summary
from hyperbo_pipelines.run.execution import Execution
from tensorflow_datasets.core.dataset_builder import FileReaderBuilder
from tensorflow_datasets.core.splits import SplitDict

from hyperbo.errors import HyperBOError, InvalidInputError
from pd1_builder.builder.features import tfds_features, write_croissant
from pd1_builder.builder.recipe import Recipe
from pd1_builder.builder.shards import write_shards
from pd1_builder.version.content_hash import content_hash
from pd1_builder.version.manifest import declared
from pd1_builder.version.verification import count_duplicates, count_records, count_rounded

REJECTS_NAME = "rejects.jsonl"
_REJECTS_SHOWN = 5
_ARRAY_RECORD = "array_record"


@dataclass(frozen=True)
class WrittenRecords:
    """What the manifest of a version states about the records that were written.

    Attributes:
      content_hash: `content_hash.content_hash` of the records.
      counts: number of records by split, task and status.
      rejects: number of rejected rows.
      duplicates: number of records whose input occurs more than once in their task.
      blocks: the matched blocks.
      rounded: number of records with a raw value a rounding outside of its declared range.
    """

    content_hash: str
    counts: Mapping[str, Mapping[str, Mapping[str, int]]]
    rejects: int
    duplicates: int
    blocks: tuple[Block, ...]
    rounded: int


class CuratedBuilder(FileReaderBuilder, skip_registration=True):  # pyright: ignore[reportCallIssue] - a keyword of TFDS's registry
    """A TFDS dataset that Beam curates. The same records lie beside its shards as Parquet.

    Args:
      recipe: how the records are made; None for `recipe_of` the raw files.
      raw: folder of raw files; needed if no recipe is given.
      version: number of the version to write. Any is possible, because the records have versions of their
        own, apart from this code.
      execution: where Beam runs; None for this process.
      max_reject_share: largest share of rows that may be rejected.
      **kwargs: see `tfds.core.DatasetBuilder`.

    Attributes:
      recipe_of: makes the recipe of a configuration for a folder of raw files.
      written: what was written; None before that.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[Any]] = []
    recipe_of: Callable[[str, Path], Recipe]
    written: WrittenRecords | None = None

    def __init__(
        self,
        *,
        recipe: Recipe | None = None,
        raw: Path | None = None,
        version: str | None = None,
        execution: Execution | None = None,
        max_reject_share: float = 0.001,
        **kwargs: Any,
    ) -> None:
        if recipe is None:
            if raw is None:
                raise InvalidInputError("no raw files were given", fix="pass raw, a folder of raw files")
            config = kwargs.get("config")
            recipe = self.recipe_of(str(getattr(config, "name", config)), raw)
        self._recipe, self._execution = recipe, execution or Execution()
        self._max_reject_share = max_reject_share
        if version is not None:
            self.VERSION = tfds.core.Version(version)
        super().__init__(version=version, **{"file_format": _ARRAY_RECORD} | kwargs)

    @classmethod
    def configuration(cls, name: str) -> Any:
        """The configuration with a name. It is created if users name the configurations of the dataset."""
        known = {config.name: config for config in cls.BUILDER_CONFIGS}
        return known.get(name) or tfds.core.BuilderConfig(name=name)

    def write(self) -> WrittenRecords:
        """Write the files of the version where TFDS expects them.

        Raises:
          InvalidInputError: too many rows are rejected, or all rows of a split.
          HyperBOError: the version's folder exists already, or rows were lost.
        """
        tfds.disable_progress_bar()
        # TFDS announces on stdout a folder that is only a staging folder.
        with contextlib.redirect_stdout(io.StringIO()):
            self.download_and_prepare(download_config=tfds.download.DownloadConfig(try_download_gcs=False))
        if self.written is None:
            raise HyperBOError(f"{self.data_dir} exists already")
        return self.written

    def _info(self) -> tfds.core.DatasetInfo:
        recipe, package = self._recipe, self.get_metadata()
        stated = declared(recipe.search_space, recipe.parameters) | dict(recipe.parameters)
        info = tfds.core.DatasetInfo(
            builder=self,
            description=recipe.description or package.description,
            citation=recipe.citation or package.citation,
            license=recipe.licence or None,
            features=tfds_features(recipe.columns),
            metadata=tfds.core.MetadataDict({name: json.dumps(value) for name, value in stated.items()}),
            disable_shuffling=True,  # The records have a canonical order.
        )
        # Otherwise TFDS looks for the dataset in its own bucket and leaves a temporary folder behind.
        info.initialize_from_bucket = lambda: None
        return info

    def _download_and_prepare(self, dl_manager: Any, download_config: Any = None) -> None:
        recipe = self._recipe
        folder = Path(self.data_dir)
        work = folder / "curated"
        work.mkdir()
        self.written = write_records(recipe, folder, work, self._execution, self._max_reject_share)
        splits = write_shards(
            folder,
            tuple(self.written.counts),
            recipe.columns,
            folder,
            self.name,
            str(self.info.as_proto.file_format),
            self._execution,
        )
        self.info.set_splits(SplitDict(splits))
        write_croissant(
            folder,
            f"{self.name}/{self.builder_config_name}",
            str(self.version),
            tuple(self.written.counts),
            recipe.columns,
            description=self.info.description,
            citation=self.info.citation,
            licence=recipe.licence,
        )


def write_records(
    recipe: Recipe, folder: Path, work: Path, execution: Execution, max_reject_share: float
) -> WrittenRecords:
    """Curate raw files with Beam, and write `<split>.parquet` and `rejects.jsonl` to a folder.

    `work` is an empty folder for temporary files, which every worker can write to.

    Raises:
      InvalidInputError: too many rows are rejected, or all rows of a split.
      HyperBOError: rows were lost.
    """
    execution.run(
        lambda pipeline: (
            pipeline | "RawFiles" >> beam.Create(list(recipe.raw_files)) | "Curate" >> recipe.curate(work)
        )
    )
    summary = read_summary(work / SUMMARY_NAME)
    assembly = assemble(work, summary, recipe.columns)
    _check(summary, assembly, recipe, max_reject_share)
    lines = [json.dumps(asdict(reject)) + "\n" for reject in summary.rejects]
    (folder / REJECTS_NAME).write_text("".join(lines), encoding="utf-8")
    counts: dict[str, dict[str, dict[str, int]]] = {split: {} for split in assembly.splits}
    repeats: list[int] = []
    rounded: list[int] = []

    def write_split(split: str) -> Iterator[pa.Table]:
        for table in write_row_groups(assembly.read(split), folder / f"{split}.parquet"):
            count_records(table, counts[split])
            repeats.append(count_duplicates(table))
            rounded.append(count_rounded(table, recipe.search_space))
            yield table

    identity = declared(recipe.search_space, recipe.parameters)
    hashed = content_hash(identity, {split: write_split(split) for split in assembly.splits})
    shutil.rmtree(work)
    return WrittenRecords(hashed, counts, len(summary.rejects), sum(repeats), summary.blocks, sum(rounded))


def _check(summary: Summary, assembly: Assembly, recipe: Recipe, max_reject_share: float) -> None:
    records, rejects = sum(map(len, assembly.splits.values())), summary.rejects
    if records + len(rejects) != recipe.rows:
        raise HyperBOError(
            f"rows were lost: {recipe.rows} rows, but {records} records and {len(rejects)} rejects"
        )
    if len(rejects) > max_reject_share * recipe.rows:
        first = "; ".join(f"{each.file}:{each.line}: {each.reason}" for each in rejects[:_REJECTS_SHOWN])
        raise InvalidInputError(
            f"{len(rejects)} of {recipe.rows} rows rejected, over the share of {max_reject_share:g}; {first}",
            fix="correct the rows, or allow more by --max-reject-share (in Python: max_reject_share)",
        )
    for split in recipe.splits:
        if split not in assembly.splits:
            raise InvalidInputError(
                f"every row of the split {split!r} was rejected", fix="correct or remove its files"
            )
