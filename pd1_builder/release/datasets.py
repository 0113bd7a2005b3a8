"""The datasets that can be built: where their raw files are, and how records are made from them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.installation import require_extras
from hyperbo.storage.paths import StrPath
from hyperbo.storage.validation import suggestion
from pd1_builder.builder.recipe import Recipe
from pd1_builder.hpob.recipe import hpob_recipe
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.release.archives import HPOB_ARCHIVE, PD1_ARCHIVE, fetch
from pd1_builder.version.catalog import data_folder
from pd1_builder.version.makeable import DATASETS, how_to_make, shipped_raw

if TYPE_CHECKING:
    from pd1_builder.builder.curated_builder import CuratedBuilder


def require_known(dataset: str) -> None:
    """Check that a dataset is one of `DATASETS`.

    Raises:
      InvalidInputError: the dataset is unknown; the message lists the known ones.
    """
    if dataset.startswith(("trials/", "bo_runs/")):
        raise InvalidInputError(
            f"{dataset} is made of files of your own, not built", fix=how_to_make(dataset, "")
        )
    if dataset not in DATASETS:
        raise InvalidInputError(
            f"unknown dataset {dataset!r}",
            fix=f"{suggestion(dataset, DATASETS)}; hyperbo data add makes datasets of your own trials",
        )


def find_recipe(dataset: str, raw: Path) -> Recipe:
    """The recipe of a dataset for a folder of its raw files.

    Raises:
      InvalidInputError: the dataset is unknown, or the files cannot be used.
    """
    require_known(dataset)
    name, _, config = dataset.partition("/")
    return (pd1_recipe if name == "pd1" else hpob_recipe)(config, raw.absolute())


def raw_folder(dataset: str, version: str, data_dir: StrPath | None) -> Path:
    """The folder of a version's raw files: those shipped with this package, else the official archive.

    The archive is downloaded into the data folder.

    Raises:
      NotAvailableError: there are no raw files, or the archive cannot be downloaded.
      InvalidInputError: the download is not the expected archive.
    """
    if folder := shipped_raw(dataset, version):
        return folder
    if dataset.startswith("pd1/mini"):
        raise NotAvailableError(
            f"no raw files are shipped for {dataset}:{version}; {how_to_make(dataset, version)}; or give a "
            "folder of raw files, as hyperbo collect writes it, by --raw (in Python: raw=)"
        )
    require_extras("build", purpose="a download")
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    downloads = data_folder(data_dir).absolute() / "downloads"
    manager = tfds.download.DownloadManager(download_dir=downloads)
    if dataset.startswith("pd1/"):
        return fetch(PD1_ARCHIVE, manager) / "pd1"
    return fetch(HPOB_ARCHIVE, manager) / "hpob-data"


def tfds_builder(dataset: str, version: str, **arguments: Any) -> CuratedBuilder:
    """The TFDS builder of a dataset. TFDS and Beam are imported only here, where a version is built."""
    name, _, config = dataset.partition("/")
    module = importlib.import_module(f"pd1_builder.{name}.{name}_dataset_builder")
    return module.Builder(config=module.Builder.configuration(config), version=version, **arguments)
