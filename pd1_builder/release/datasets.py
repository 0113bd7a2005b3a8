"""The datasets that can be built: where their raw files are, and how records are made from them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.builder.recipe import Recipe
from pd1_builder.hpob.recipe import CONFIGURATIONS as HPOB
from pd1_builder.hpob.recipe import hpob_recipe
from pd1_builder.pd1.recipe import CONFIGURATIONS as PD1
from pd1_builder.pd1.recipe import pd1_recipe
from pd1_builder.release.archives import HPOB_ARCHIVE, PD1_ARCHIVE, fetch
from pd1_builder.version.catalog import default_data_dir

if TYPE_CHECKING:
    from pd1_builder.builder.curated_builder import CuratedBuilder

_PACKAGE = Path(__file__).parent.parent
# The datasets built from raw files of a fixed layout. `next_version.add` makes those of users.
DATASETS = (*(f"pd1/{config}" for config in PD1), *(f"hpob/{config}" for config in HPOB))


def require_known(dataset: str) -> None:
    """Check that a dataset is one of `DATASETS`.

    Raises:
      InvalidInputError: the dataset is unknown; the message lists the known ones.
    """
    if dataset not in DATASETS:
        raise InvalidInputError(
            f"unknown dataset {dataset!r}",
            fix=f"use one of {', '.join(DATASETS)}; hyperbo data add makes datasets of your own trials",
        )


def find_recipe(dataset: str, raw: Path) -> Recipe:
    """The recipe of a dataset for a folder of its raw files.

    Raises:
      InvalidInputError: the dataset is unknown, or the files cannot be used.
    """
    require_known(dataset)
    name, _, config = dataset.partition("/")
    return (pd1_recipe if name == "pd1" else hpob_recipe)(config, raw.absolute())


def raw_folder(dataset: str, version: str, data_dir: Path | None) -> Path:
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
            f"no raw files are shipped for {dataset}:{version}, only for 1.0.0 and 2.0.0; give a folder of "
            "raw files by --raw (in Python: raw=); hyperbo collect writes such a folder"
        )
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    downloads = (data_dir or default_data_dir()).absolute() / "downloads"
    manager = tfds.download.DownloadManager(download_dir=downloads)
    if dataset.startswith("pd1/"):
        return fetch(PD1_ARCHIVE, manager) / "pd1"
    return fetch(HPOB_ARCHIVE, manager) / "hpob-data"


def shipped_raw(dataset: str, version: str) -> Path | None:
    """The folder of raw files shipped for a version, such as `pd1/raw/mini-1.0.0`; None if there is none."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    folder = _PACKAGE / name / "raw" / f"{config}-{version}"
    return folder if folder.is_dir() else None


def newest_shipped(dataset: str) -> str | None:
    """The newest version of a dataset whose raw files are shipped; None if there is none."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    found = [
        folder.name.removeprefix(f"{config}-") for folder in (_PACKAGE / name / "raw").glob(f"{config}-*")
    ]
    return max(found, key=lambda version: tuple(map(int, version.split("."))), default=None)


def tfds_builder(dataset: str, version: str, **arguments: Any) -> CuratedBuilder:
    """The TFDS builder of a dataset. TFDS and Beam are imported only here, where a version is built."""
    name, _, config = dataset.partition("/")
    module = importlib.import_module(f"pd1_builder.{name}.{name}_dataset_builder")
    return module.Builder(config=module.Builder.configuration(config), version=version, **arguments)
