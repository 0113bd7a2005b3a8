"""Which versions a data folder holds, and where they are. One folder is the default everywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.atomic import user_folder
from hyperbo.storage.paths import StrPath, as_path
from pd1_builder.version.advice import data_option, not_here
from pd1_builder.version.manifest import DATASET, MANIFEST_NAME, VERSION


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


def data_folder(data_dir: StrPath | None = None) -> Path:
    """The data folder that a caller names; for None the default one.

    Raises:
      InvalidInputError: it is no path, or a file is in its place.
    """
    folder = default_data_dir() if data_dir is None else as_path(data_dir, "data_dir")
    if folder.is_file():
        raise InvalidInputError("this is a file", where=str(folder), fix="name the folder of versions")
    return folder


def parse_reference(reference: str) -> tuple[str, str]:
    """The dataset and the version that a reference names; the version is empty where it names none.

    >>> parse_reference("pd1/mini:1.0.0")
    ('pd1/mini', '1.0.0')

    Raises:
      InvalidInputError: it is no text, or not `<name>/<config>` or `<name>/<config>:<version>`.
    """
    if not isinstance(reference, str):
        raise InvalidInputError(f"{reference!r} is no reference", fix="write text, such as 'pd1/mini:1.0.0'")
    dataset, colon, version = reference.partition(":")
    _check(dataset, version if colon else "0.0.0", reference)
    return dataset, version


def version_folder(dataset: str, version: str, data_dir: StrPath | None = None) -> Path:
    """The folder of a version, whether the version exists or not.

    Raises:
      InvalidInputError: the dataset is not `<name>/<config>`, or the version is not three numbers.
    """
    _check(dataset, version, f"{dataset}:{version}")
    # Absolute, because a worker may run in another folder.
    return data_folder(data_dir).absolute() / dataset / version


def _check(dataset: str, version: str, reference: str) -> None:
    named, at, number = str(dataset).partition("@")
    if at and DATASET.fullmatch(named):
        right = f"{named}:{number if VERSION.fullmatch(number) else '1.0.0'}"
        raise InvalidInputError(
            f"{reference!r} is no reference", fix=f"write it with a colon, such as {right}"
        )
    if not DATASET.fullmatch(str(dataset)):
        raise InvalidInputError(
            f"{dataset!r} is no name of a dataset",
            fix="write <name>/<config> in small letters, digits and _, such as pd1/mini",
        )
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise InvalidInputError(
            f"{version!r} is no version number",
            where=dataset,
            fix=f"write three numbers, such as {dataset}:1.0.0",
        )


def versions(data_dir: StrPath | None = None) -> tuple[Version, ...]:
    """The complete versions of a data folder, sorted by dataset, then by version."""
    root = data_folder(data_dir)
    found = []
    for manifest in root.glob(f"*/*/*/{MANIFEST_NAME}"):
        folder = manifest.parent
        dataset = folder.parent.relative_to(root).as_posix()
        # Staging folders and unrelated folders have other names.
        if DATASET.fullmatch(dataset) and VERSION.fullmatch(folder.name):
            found.append(Version(dataset, folder.name, folder))
    return tuple(sorted(found, key=lambda each: (each.dataset, version_numbers(each.version))))


def find(reference: str, data_dir: StrPath | None = None) -> Version:
    """Find a version by its reference, `<name>/<config>:<version>`. Without a version, find the newest.

    Raises:
      InvalidInputError: the reference is malformed.
      NotAvailableError: the data folder does not hold the version. The message names the nearest one that it
        holds, another folder that holds it, and how to make it, each where there is one.
    """
    if found := find_here(reference, data_dir):
        return found
    root = data_folder(data_dir)
    there = [(each.dataset, each.version) for each in versions(root)]
    option = "" if root.absolute() == default_data_dir().absolute() else data_option(root)
    elsewhere = _other_folder_with(reference, root)
    raise NotAvailableError(not_here(*parse_reference(reference), root, there, option, elsewhere))


def _other_folder_with(reference: str, root: Path) -> Path | None:
    """The default data folder, or one that earlier releases or the documents use, if it holds a version."""
    for folder in (default_data_dir(), Path("runs", "data"), Path("data")):
        if folder.is_dir() and folder.absolute() != root.absolute() and find_here(reference, folder):
            return folder
    return None


def find_here(reference: str, data_dir: StrPath | None = None) -> Version | None:
    """Find a version as `find` does, but return None if the data folder does not hold it.

    Raises:
      InvalidInputError: the reference is malformed.
    """
    dataset, version = parse_reference(reference)
    known = [each for each in versions(data_dir) if each.dataset == dataset]
    chosen = [each for each in known if not version or each.version == version]
    return chosen[-1] if chosen else None


def newest_below(dataset: str, version: str, data_dir: StrPath | None = None) -> Version | None:
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
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise InvalidInputError(f"{version!r} is no version number", fix="write three numbers, such as 1.0.0")
    return tuple(int(part) for part in version.split("."))
