"""TFDS builder of PD1: the release itself, and PD1 mini, which this project collected."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import tensorflow_datasets as tfds
from apache_beam import pvalue

from hyperbo.search_space import PD1_SEARCH_SPACE
from pd1_builder.features import Column, columns, tfds_features, to_example
from pd1_builder.shipped import shipped_raw
from pipelines.build import CurateTrials, CurationOptions, check_rejects
from pipelines.parse import CURVES, METRICS
from pipelines.raw_files import find_raw_files
from pipelines.records import RawFile, Reject
from pipelines.summarize import Summary

PD1_COLUMNS: tuple[Column, ...] = columns(PD1_SEARCH_SPACE, METRICS, CURVES)


@dataclasses.dataclass
class Pd1Config(tfds.core.BuilderConfig):
    """A configuration; `origin` is written into every record."""

    origin: str = ""


class Builder(tfds.core.GeneratorBasedBuilder):
    """PD1 as a TFDS dataset, splits `matched` and `unmatched`.

    Args:
      raw_files: the raw files; None for those shipped, or else in TFDS's manual folder.
      max_reject_share: largest share of rows that may be rejected.
      report: called, where the pipeline runs, with the one summary and all rejects. None: a build with too
        many rejects fails inside the pipeline.
      version: the version to write; any is possible, for records are versioned apart from this code.
      **kwargs: see `tfds.core.DatasetBuilder`.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[Any]] = [
        Pd1Config(
            name="mini", origin="collected", description="Small tasks, collected by pipelines/collect."
        ),
        Pd1Config(name="release", origin="release", description="The official release, 24 tasks."),
    ]
    MANUAL_DOWNLOAD_INSTRUCTIONS = (
        "Unpack pd1.tar.gz and point manual_dir at its folder pd1/, which holds "
        "pd1_{matched,unmatched}_phase{0,1}_results.jsonl, gzipped or not."
    )

    def __init__(
        self,
        *,
        raw_files: Sequence[RawFile] | None = None,
        max_reject_share: float = 0.001,
        report: Callable[[Summary, list[Reject]], None] | None = None,
        version: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._raw_files, self._max_reject_share, self._report = raw_files, max_reject_share, report
        if version is not None:
            self.VERSION = tfds.core.Version(version)
        super().__init__(version=version, **kwargs)

    @property
    def options(self) -> CurationOptions:
        """What decides the records."""
        config: Any = self.builder_config
        return CurationOptions(config.origin, max_reject_share=self._max_reject_share)

    def _info(self) -> tfds.core.DatasetInfo:
        options = self.options
        declared = {
            "search_space": json.dumps(options.search_space.to_json()),
            "objective": options.objective,
            "warping": options.warping,
        }
        info = self.dataset_info_from_configs(
            features=tfds_features(PD1_COLUMNS), metadata=tfds.core.MetadataDict(declared)
        )
        # TFDS would look for the dataset in a bucket of its own, and leave a temporary folder behind.
        info.initialize_from_bucket = lambda: None
        return info

    def _split_generators(self, dl_manager: Any, pipeline: beam.Pipeline) -> dict[str, Any]:
        raw_files = self._raw_files
        if raw_files is None:
            folder = shipped_raw(f"pd1/{self.builder_config_name}", str(self.version))
            raw_files = find_raw_files(folder or Path(dl_manager.manual_dir))
        options = self.options
        curated = (
            pipeline | "RawFiles" >> beam.Create(list(raw_files)) | "CurateTrials" >> CurateTrials(options)
        )
        rejects = pvalue.AsList(curated.rejects)
        if self._report is not None:
            _ = curated.summary | "Report" >> beam.Map(self._report, rejects)
        else:
            _ = curated.summary | "CheckRejects" >> beam.Map(check_rejects, rejects, options.max_reject_share)
        return {
            split: curated.records
            | f"Select_{split}" >> beam.Filter(_is_of_split, split)
            | f"Encode_{split}" >> beam.Map(to_example, PD1_COLUMNS)
            for split in sorted({file.split for file in raw_files if file.rows})
        }

    def _generate_examples(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("the splits are Beam collections, made by _split_generators")


def _is_of_split(record: Any, split: str) -> bool:
    return record.trial.split == split
