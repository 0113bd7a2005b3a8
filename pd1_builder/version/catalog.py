"""Which versions a data folder holds, where they are, and how a missing one can be made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.atomic import user_folder
from pd1_builder.version.manifest import DATASET, MANIFEST_NAME, VERSION
from pd1_builder.version.pull_record import was_pulled


class Version(NamedTuple):
    """A version in a data folder.

    Attributes:
      dataset: `<name>/<config>`.
      version: its number, such as 1.0.0.
      folder: the folder of its files.
    """

    dataset: str
    version: str
    folder: Path


def default_data_dir() -> Path:
    """The data folder: `$HYPERBO_DATA_DIR` if it is set, else `hyperbo` in the user's own folder of data."""
    if folder := os.environ.get("HYPERBO_DATA_DIR"):
        return Path(folder)
    return user_folder()


def version_folder(dataset: str, version: str, data_dir: Path | None = None) -> Path:
    """The folder of a version, whether the version exists or not.

    Raises:
      InvalidInputError: the dataset is not `<name>/<config>`, or the version is not three numbers.
    """
    if not DATASET.fullmatch(dataset):
        raise InvalidInputError(
            f"{dataset!r} is no name of a dataset",
            fix="write <name>/<config> in small letters, digits and _, such as pd1/mini",
        )
    if not VERSION.fullmatch(version):
        raise InvalidInputError(
            f"{version!r} is no version number", where=dataset, fix="write three numbers, such as 1.0.0"
        )
    # Absolute, because a worker may run in another folder.
    return (data_dir or default_data_dir()).absolute() / dataset / version


def versions(data_dir: Path | None = None) -> tuple[Version, ...]:
    """The complete versions of a data folder, sorted by dataset, then by version."""
    root = data_dir or default_data_dir()
    found = []
    for manifest in root.glob(f"*/*/*/{MANIFEST_NAME}"):
        folder = manifest.parent
        dataset = folder.parent.relative_to(root).as_posix()
        # Staging folders and unrelated folders have other names.
        if DATASET.fullmatch(dataset) and VERSION.fullmatch(folder.name):
            found.append(Version(dataset, folder.name, folder))
    return tuple(sorted(found, key=lambda each: (each.dataset, version_numbers(each.version))))


def find(reference: str, data_dir: Path | None = None) -> Version:
    """Find a version by its reference, `<name>/<config>:<version>`. Without a version, find the newest.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: the data folder does not hold the version; the message lists those that it holds.
    """
    if found := find_here(reference, data_dir):
        return found
    dataset = reference.partition(":")[0]
    names = ", ".join(each.version for each in versions(data_dir) if each.dataset == dataset) or "none"
    raise NotAvailableError(
        f"{reference} is not in {data_dir or default_data_dir()} (versions of {dataset} there: {names}); "
        f"{_how_to_make(dataset, reference, data_dir)}"
    )


def find_here(reference: str, data_dir: Path | None = None) -> Version | None:
    """Find a version as `find` does, but return None if the data folder does not hold it.

    Raises:
      InvalidInputError: the reference is malformed.
    """
    dataset, colon, version = reference.partition(":")
    version_folder(dataset, version if colon else "0.0.0")
    known = [each for each in versions(data_dir) if each.dataset == dataset]
    chosen = [each for each in known if not colon or each.version == version]
    return chosen[-1] if chosen else None


# Datasets that users make from their own files, and the command for it. A version keeps the files in `raw`.
_MADE_OF_OWN_FILES = {"trials": "add", "bo_runs": "record"}


def _how_to_make(dataset: str, reference: str, data_dir: Path | None) -> str:
    name, _, config = dataset.partition("/")
    where = f" --data {data_dir}" if data_dir else ""
    pull = f"hyperbo data pull {reference} --from PLACE{where}"
    if name in _MADE_OF_OWN_FILES:
        return f"make it with hyperbo data {_MADE_OF_OWN_FILES[name]} {config}, or pull it: {pull}"
    return f"build it with hyperbo data build {reference}{where}, or pull it: {pull}"


def remedy(folder: Path, dataset: str, version: str) -> str:
    """What to do about a damaged version without losing a file that exists nowhere else."""
    name, _, config = dataset.partition("/")
    if was_pulled(folder):
        root = folder.parents[2]
        return f"remove the version, hyperbo data prune {dataset}:{version} --data {root}, and pull it again"
    if name in _MADE_OF_OWN_FILES:
        return (
            f"copy {folder / 'raw'} elsewhere, remove {folder}, and make {version} again from those files: "
            f"hyperbo data {_MADE_OF_OWN_FILES[name]} {config} --version {version}"
        )
    return f"remove {folder} and build {dataset}:{version} again"


def newest_below(dataset: str, version: str, data_dir: Path | None = None) -> Version | None:
    """The newest version of a dataset whose number is lower than a given one; None if there is none."""
    earlier = [
        each
        for each in versions(data_dir)
        if each.dataset == dataset and version_numbers(each.version) < version_numbers(version)
    ]
    return earlier[-1] if earlier else None


def version_numbers(version: str) -> tuple[int, ...]:
    """The three numbers of a version, for comparisons.

    Raises:
      InvalidInputError: the version is not three numbers.
    """
    if not VERSION.fullmatch(version):
        raise InvalidInputError(f"{version!r} is no version number", fix="write three numbers, such as 1.0.0")
    return tuple(int(part) for part in version.split("."))
