"""Removing what can be pulled again, and the folders that interrupted pulls and builds left behind."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import HyperBOError, InvalidInputError
from hyperbo.storage.paths import StrPath
from hyperbo.storage.staging import lock
from pd1_builder.version.catalog import Version, data_folder, find, version_folder, versions
from pd1_builder.version.manifest import DATASET, VERSION
from pd1_builder.version.pull_record import pull_record, was_pulled

# Folders beside the versions that interrupted builds, pulls and removals left.
_LEFT_OVER = re.compile(rf"\.(building|pulling|removing)-(?P<version>{VERSION.pattern})-\w+")


class Removed(NamedTuple):
    """A folder that was removed, or would be, and the size of its files in bytes."""

    folder: Path
    size: int


class _InUseError(Exception):
    """Another process holds the lock of the version."""


def prune(
    references: Sequence[str] = (),
    *,
    keep: int | None = None,
    data_dir: StrPath | None = None,
    dry_run: bool = False,
) -> tuple[Removed, ...]:
    """Remove what interrupted pulls and builds left, and pulled versions that are not needed.

    A version that was built here is never removed, and neither is a folder that a process is working on.

    Args:
      references: pulled versions to remove, `<name>/<config>:<version>`.
      keep: number of pulled versions of each dataset that stay, the newest ones; None to keep all.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      dry_run: only return what would be removed.

    Returns:
      The folders that were removed.

    Raises:
      InvalidInputError: a reference has no version, or its version was not pulled; or `keep` is negative.
      NotAvailableError: the data folder does not hold a version.
      HyperBOError: one of the versions is in use, or a folder cannot be removed.
    """
    if keep is not None and keep < 0:
        raise InvalidInputError(f"keep is {keep}", fix="give a number of versions, 0 or more")
    chosen = dict.fromkeys(version.folder for version in _superseded(keep, data_dir))
    named = set()
    for reference in references:
        if ":" not in reference:
            raise InvalidInputError(
                f"reference {reference!r}", fix="name the version, such as pd1/mini:1.0.0"
            )
        version = find(reference, data_dir)
        if not was_pulled(version.folder):
            raise InvalidInputError(
                f"{reference} was not pulled, and may exist nowhere else",
                fix=f"remove {version.folder} yourself if you can make it again",
            )
        chosen[version.folder] = None
        named.add(version.folder)
    # Left-over folders first: an interrupted removal may have left one of the name that a new one needs.
    every = [*_left_over(data_dir), *((folder, folder) for folder in chosen)]
    removed = []
    for folder, target in every:
        try:
            removed += _remove(folder, target, dry_run)
        except _InUseError as error:
            if folder in named:
                raise HyperBOError(f"{folder} is in use by another process; try again later") from error
        except OSError as error:
            raise HyperBOError(f"{folder} cannot be removed: {error}") from error
    return tuple(removed)


def _superseded(keep: int | None, data_dir: StrPath | None) -> Iterator[Version]:
    if keep is None:
        return
    by_dataset: dict[str, list[Version]] = {}
    for version in versions(data_dir):
        if was_pulled(version.folder):
            by_dataset.setdefault(version.dataset, []).append(version)
    for pulled in by_dataset.values():
        yield from pulled[: max(len(pulled) - keep, 0)]


def _left_over(data_dir: StrPath | None) -> Iterator[tuple[Path, Path]]:
    """Left-over folders, each with the folder of the version whose lock protects it."""
    root = data_folder(data_dir)
    for folder in sorted(root.glob("*/*/.*")):
        found = _LEFT_OVER.fullmatch(folder.name)
        dataset = folder.parent.relative_to(root).as_posix()
        if found and folder.is_dir() and DATASET.fullmatch(dataset):
            yield folder, version_folder(dataset, found["version"], data_dir)


def _remove(folder: Path, target: Path, dry_run: bool) -> Iterator[Removed]:
    """Remove a folder, unless a process is working on the version at `target`."""

    def in_use() -> None:
        raise _InUseError

    with lock(target, in_use):
        if not folder.is_dir():
            return
        size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        if not dry_run:
            _remove_folder(folder, target)
        yield Removed(folder, size)


def _remove_folder(folder: Path, target: Path) -> None:
    if folder == target:
        # Renamed first, so that it never looks like a version while it is half removed.
        folder = folder.rename(folder.with_name(f".removing-{folder.name}-0"))
        pull_record(target).unlink(missing_ok=True)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
