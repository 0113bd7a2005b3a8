"""CuratedBuilder: what the TFDS builders of this package share."""

from __future__ import annotations

import contextlib
import io
import json
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import tensorflow_datasets as tfds
from tensorflow_datasets.core.dataset_builder import FileReaderBuilder
from tensorflow_datasets.core.splits import SplitDict

from hyperbo.errors import HyperBOError, InvalidInputError
from pd1_builder.croissant import write_croissant
from pd1_builder.features import tfds_features
from pd1_builder.manifest import declared
from pd1_builder.prepare import Prepared, write_records
from pd1_builder.recipe import Recipe
from pd1_builder.shards import write_shards
from pipelines.execution import Execution

_ARRAY_RECORD = "array_record"


class CuratedBuilder(FileReaderBuilder, skip_registration=True):  # pyright: ignore[reportCallIssue] - a keyword of TFDS's registry
    """A TFDS dataset curated by Beam; beside its shards lie the same records as Parquet.

    Args:
      recipe: what makes the records; None for `recipe_of` the raw files.
      raw: folder of raw files, where no recipe is given.
      version: the version to write; any is possible, for records are versioned apart from this code.
      execution: where Beam runs; None for this process.
      max_reject_share: largest share of rows that may be rejected.
      **kwargs: see `tfds.core.DatasetBuilder`.

    Attributes:
      prepared: what the records are, once they have been written.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[Any]] = []
    prepared: Prepared | None = None

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
                raise InvalidInputError("nothing to make records of", fix="pass raw, a folder of raw files")
            config = kwargs.get("config")
            recipe = self.recipe_of(str(getattr(config, "name", config)), raw)
        self._recipe, self._execution = recipe, execution or Execution()
        self._max_reject_share = max_reject_share
        if version is not None:
            self.VERSION = tfds.core.Version(version)
        super().__init__(version=version, **{"file_format": _ARRAY_RECORD} | kwargs)

    @classmethod
    def configuration(cls, name: str) -> Any:
        """The configuration of that name, made up where configurations are named by their users."""
        known = {config.name: config for config in cls.BUILDER_CONFIGS}
        return known.get(name) or tfds.core.BuilderConfig(name=name)

    @classmethod
    @abstractmethod
    def recipe_of(cls, config: str, raw: Path) -> Recipe:
        """What makes the records of a configuration from a folder of raw files."""

    def prepare(self) -> Prepared:
        """Write the files of the version where TFDS wants them.

        Returns:
          What its records are.
        """
        tfds.disable_progress_bar()
        # TFDS announces on stdout a folder that is but a stage of ours.
        with contextlib.redirect_stdout(io.StringIO()):
            self.download_and_prepare(download_config=tfds.download.DownloadConfig(try_download_gcs=False))
        if self.prepared is None:
            raise HyperBOError(f"{self.data_dir} was there already")
        return self.prepared

    def _info(self) -> tfds.core.DatasetInfo:
        recipe, of_package = self._recipe, self.get_metadata()
        stated = declared(recipe.search_space, recipe.parameters) | dict(recipe.parameters)
        info = tfds.core.DatasetInfo(
            builder=self,
            description=recipe.description or of_package.description,
            citation=recipe.citation or of_package.citation,
            license=recipe.licence or None,
            features=tfds_features(recipe.columns),
            metadata=tfds.core.MetadataDict({name: json.dumps(value) for name, value in stated.items()}),
            disable_shuffling=True,  # Records have an order of their own.
        )
        # TFDS would look for the dataset in a bucket of its own, and leave a temporary folder behind.
        info.initialize_from_bucket = lambda: None
        return info

    def _download_and_prepare(self, dl_manager: Any, download_config: Any = None) -> None:
        recipe = self._recipe
        folder = Path(self.data_dir)
        work = folder / "curated"
        work.mkdir()
        self.prepared = write_records(recipe, folder, work, self._execution, self._max_reject_share)
        splits = write_shards(
            folder,
            tuple(self.prepared.counts),
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
            tuple(self.prepared.counts),
            recipe.columns,
            description=self.info.description,
            citation=self.info.citation,
            licence=recipe.licence,
        )
