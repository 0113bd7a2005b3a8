"""The datasets that can be built, by name: where their raw files are, what makes records of them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.archives import HPOB_ARCHIVE, PD1_ARCHIVE, fetch
from pd1_builder.catalog import default_data_dir
from pd1_builder.hpob.recipe import CONFIGURATIONS as HPOB
from pd1_builder.hpob.recipe import hpob_recipe
from pd1_builder.pd1.recipe import CONFIGURATIONS as PD1
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.recipe import Recipe
from pd1_builder.shipped import shipped_raw

if TYPE_CHECKING:
    from pd1_builder.curated_builder import CuratedBuilder

# Those that are built from raw files of a layout of their own; `additions.add` makes others.
DATASETS = (*(f"pd1/{config}" for config in PD1), *(f"hpob/{config}" for config in HPOB))


def require_known(dataset: str) -> None:
    """Refuse a name that is no dataset.

    Raises:
      InvalidInputError: lists those that are.
    """
    if dataset not in DATASETS:
        raise InvalidInputError(
            f"unknown dataset {dataset!r}",
            fix=f"use one of {', '.join(DATASETS)}; trials of your own are added: hyperbo data add",
        )


def find_recipe(dataset: str, raw: Path) -> Recipe:
    """What makes the records of a dataset from a folder of its raw files.

    Raises:
      InvalidInputError: there is no such dataset, or the files cannot be used.
    """
    require_known(dataset)
    name, _, config = dataset.partition("/")
    return (pd1_recipe if name == "pd1" else hpob_recipe)(config, raw.absolute())


def raw_folder(dataset: str, version: str, data_dir: Path | None) -> Path:
    """The folder of raw files shipped for a version; else of the official archive, which is downloaded.

    Raises:
      NotAvailableError: there are none, or the archive cannot be downloaded.
      InvalidInputError: it is not the archive expected.
    """
    if folder := shipped_raw(dataset, version):
        return folder
    if dataset.startswith("pd1/mini"):
        raise NotAvailableError(
            f"no raw files are shipped for {dataset}:{version}, only for 1.0.0 and 2.0.0; give a folder of "
            "raw files, such as hyperbo collect writes"
        )
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    downloads = (data_dir or default_data_dir()).absolute() / "downloads"
    manager = tfds.download.DownloadManager(download_dir=downloads)
    if dataset.startswith("pd1/"):
        return fetch(PD1_ARCHIVE, manager) / "pd1"
    return fetch(HPOB_ARCHIVE, manager) / "hpob-data"


def tfds_builder(dataset: str, version: str, **arguments: Any) -> CuratedBuilder:
    """The TFDS builder of a dataset; TFDS and Beam are imported here, not where a version is verified."""
    name, _, config = dataset.partition("/")
    module = importlib.import_module(f"pd1_builder.{name}.{name}_dataset_builder")
    return module.Builder(config=module.Builder.configuration(config), version=version, **arguments)
