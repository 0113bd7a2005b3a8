"""Removing what can be had again: pulled versions, and what pulls and builds left that were ended."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hyperbo.errors import HyperBOError, InvalidInputError
from pd1_builder.catalog import Version, default_data_dir, find, version_folder, versions
from pd1_builder.manifest_fields import DATASET, VERSION
from pd1_builder.pulled import pull_record, was_pulled
from pd1_builder.staging import lock_version

# Folders beside the versions: of builds, of pulls, and of removals that were ended.
_LEFT_OVER = re.compile(rf"\.(building|pulling|removing)-(?P<version>{VERSION.pattern})-\w+")


class Removed(NamedTuple):
    """What was removed, or would be: its folder, and the bytes of its files."""

    folder: Path
    size: int


class _InUseError(Exception):
    """Another process holds the lock of a version."""


def prune(
    references: Sequence[str] = (),
    *,
    keep: int | None = None,
    data_dir: Path | None = None,
    dry_run: bool = False,
) -> tuple[Removed, ...]:
    """Remove what was left by pulls and builds that were ended, and versions that can be pulled again.

    A version that was built here is never removed, nor anything that a process is making.

    Args:
      references: pulled versions to remove, `<name>/<config>:<version>`.
      keep: of the pulled versions of each dataset, the newest so many stay, the others go; None: all stay.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      dry_run: remove nothing, only say what would be.

    Returns:
      What was removed.

    Raises:
      InvalidInputError: a reference names no version, or one that was not pulled.
      NotAvailableError: there is no such version.
      HyperBOError: a version that was named is in use, or something cannot be removed.
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
                f"{reference} was not pulled, and may be nowhere else",
                fix=f"remove {version.folder} yourself if it can be made again",
            )
        chosen[version.folder] = None
        named.add(version.folder)
    # What is left over goes first: a removal that was ended may have left a folder of the same name.
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


def _superseded(keep: int | None, data_dir: Path | None) -> Iterator[Version]:
    if keep is None:
        return
    by_dataset: dict[str, list[Version]] = {}
    for version in versions(data_dir):
        if was_pulled(version.folder):
            by_dataset.setdefault(version.dataset, []).append(version)
    for pulled in by_dataset.values():
        yield from pulled[: max(len(pulled) - keep, 0)]


def _left_over(data_dir: Path | None) -> Iterator[tuple[Path, Path]]:
    """Folders that are no versions, each with that of the version whose lock is theirs."""
    root = data_dir or default_data_dir()
    for folder in sorted(root.glob("*/*/.*")):
        found = _LEFT_OVER.fullmatch(folder.name)
        dataset = folder.parent.relative_to(root).as_posix()
        if found and folder.is_dir() and DATASET.fullmatch(dataset):
            yield folder, version_folder(dataset, found["version"], data_dir)


def _remove(folder: Path, target: Path, dry_run: bool) -> Iterator[Removed]:
    """Remove a folder, unless a process is at work on the version at `target`."""

    def in_use() -> None:
        raise _InUseError

    with lock_version(target, in_use):
        if not folder.is_dir():
            return
        size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        if not dry_run:
            _remove_at_once(folder, target)
        yield Removed(folder, size)


def _remove_at_once(folder: Path, target: Path) -> None:
    if folder == target:
        # Half removed, it must not look like a version.
        folder = folder.rename(folder.with_name(f".removing-{folder.name}-0"))
        pull_record(target).unlink(missing_ok=True)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
