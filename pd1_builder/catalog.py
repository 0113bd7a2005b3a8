"""Which datasets and versions exist, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.files import user_folder
from pd1_builder.manifest_fields import DATASET, MANIFEST_NAME, VERSION
from pd1_builder.pulled import was_pulled


class Version(NamedTuple):
    """A version that exists: `dataset` is `<name>/<config>`, `folder` holds its files."""

    dataset: str
    version: str
    folder: Path


def default_data_dir() -> Path:
    """Where datasets are kept: `$HYPERBO_DATA_DIR`, else `hyperbo` in the user's data folder."""
    if folder := os.environ.get("HYPERBO_DATA_DIR"):
        return Path(folder)
    return user_folder()


def version_folder(dataset: str, version: str, data_dir: Path | None = None) -> Path:
    """Where a version is, or would be built.

    Raises:
      InvalidInputError: the dataset is not `<name>/<config>`, or the version not three numbers.
    """
    if not DATASET.fullmatch(dataset):
        raise InvalidInputError(f"dataset {dataset!r}", fix="write <name>/<config>, such as pd1/mini")
    if not VERSION.fullmatch(version):
        raise InvalidInputError(
            f"version {version!r}", where=dataset, fix="write three numbers, such as 1.0.0"
        )
    # Absolute, for a worker may run in another folder.
    return (data_dir or default_data_dir()).absolute() / dataset / version


def versions(data_dir: Path | None = None) -> tuple[Version, ...]:
    """The complete versions of a data folder, sorted by dataset, then by version."""
    root = data_dir or default_data_dir()
    found = []
    for manifest in root.glob(f"*/*/*/{MANIFEST_NAME}"):
        folder = manifest.parent
        dataset = folder.parent.relative_to(root).as_posix()
        # Staging folders, and whatever else lies here, have other names.
        if DATASET.fullmatch(dataset) and VERSION.fullmatch(folder.name):
            found.append(Version(dataset, folder.name, folder))
    return tuple(sorted(found, key=lambda each: (each.dataset, version_numbers(each.version))))


def find(reference: str, data_dir: Path | None = None) -> Version:
    """Find a version by `<name>/<config>:<version>`; without a version, the newest.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: there is no such version; the message lists those that exist.
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
    """Find a version as `find` does; None where there is none.

    Raises:
      InvalidInputError: the reference is malformed.
    """
    dataset, colon, version = reference.partition(":")
    version_folder(dataset, version if colon else "0.0.0")
    known = [each for each in versions(data_dir) if each.dataset == dataset]
    chosen = [each for each in known if not colon or each.version == version]
    return chosen[-1] if chosen else None


# Datasets that users make of files of their own; a version keeps those files in its folder `raw`.
_MADE_OF_OWN_FILES = {"trials": "add", "bo_runs": "record"}


def _how_to_make(dataset: str, reference: str, data_dir: Path | None) -> str:
    name, _, config = dataset.partition("/")
    where = f" --data {data_dir}" if data_dir else ""
    pull = f"hyperbo data pull {reference} --from PLACE{where}"
    if name in _MADE_OF_OWN_FILES:
        return f"make it with hyperbo data {_MADE_OF_OWN_FILES[name]} {config}, or pull it: {pull}"
    return f"build it with hyperbo data build {reference}{where}, or pull it: {pull}"


def remedy(folder: Path, dataset: str, version: str) -> str:
    """What to do about a version that is damaged, such that no file is lost that is nowhere else."""
    name, _, config = dataset.partition("/")
    if was_pulled(folder):
        root = folder.parents[2]
        return f"remove the version, hyperbo data prune {dataset}:{version} --data {root}, and pull it again"
    if name in _MADE_OF_OWN_FILES:
        return (
            f"copy {folder / 'raw'} elsewhere, remove {folder}, and make {version} again of those files: "
            f"hyperbo data {_MADE_OF_OWN_FILES[name]} {config} --version {version}"
        )
    return f"remove {folder} and build {dataset}:{version} again"


def newest_below(dataset: str, version: str, data_dir: Path | None = None) -> Version | None:
    """The newest version of a dataset before another; None where there is none."""
    earlier = [
        each
        for each in versions(data_dir)
        if each.dataset == dataset and version_numbers(each.version) < version_numbers(version)
    ]
    return earlier[-1] if earlier else None


def version_numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, for comparisons.

    Raises:
      InvalidInputError: it is not three numbers.
    """
    if not VERSION.fullmatch(version):
        raise InvalidInputError(f"version {version!r}", fix="write three numbers, such as 1.0.0")
    return tuple(int(part) for part in version.split("."))
