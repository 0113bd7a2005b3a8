"""Whether a version's number says the truth about what changed since its parent."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.diff import Bump, Changes, Diff, diff_folders

_COMPONENTS: tuple[Bump, ...] = get_args(Bump)


def check_version(parent: Path, folder: Path) -> Diff:
    """Hold the number of the version in a folder to what changed since its parent in another.

    Raises:
      VersionConflictError: says what changed, and which number would be right; or a version's files are not
        those of its manifest.
      NotAvailableError: a folder holds no version.
    """
    found = diff_folders(parent, folder)
    check_number(found.parent.version, found.manifest.version, found.changes)
    return found


def check_number(parent: str, version: str, changes: Changes) -> None:
    """Hold a number to the contract: greater than its parent's, and what changed decides where it differs.

    A larger step than required is wrong too: the number has to say what changed.

    Args:
      parent: number of the parent, such as `1.0.0`.
      version: the number to check.
      changes: what changed from the parent to the version.

    Raises:
      VersionConflictError: says what changed, and which number would be right.
      InvalidInputError: a number is not three numbers.
    """
    old, new = _numbers(parent), _numbers(version)
    if new <= old:
        wrong = f"version {version} does not follow its parent {parent}"
    else:
        step = next(name for name, a, b in zip(_COMPONENTS, old, new, strict=True) if a != b)
        if step == changes.bump:
            return
        wrong = f"version {version} is a {step} step from its parent {parent}"
    phrases = changes.breaking or changes.additions or ("no record, field or split changed",)
    raise VersionConflictError(
        f"{wrong}, and the change is {changes.bump}: {'; '.join(phrases)}; "
        f"use {next_version(parent, changes.bump)}"
    )


def next_version(parent: str, bump: Bump) -> str:
    """The smallest number that follows a parent by a bump.

    >>> next_version("1.2.3", "minor")
    '1.3.0'
    """
    numbers = _numbers(parent)
    place = _COMPONENTS.index(bump)
    return ".".join(map(str, (*numbers[:place], numbers[place] + 1, *(0,) * (2 - place))))


def _numbers(version: str) -> tuple[int, int, int]:
    try:
        major, minor, patch = map(int, version.split("."))
    except ValueError as error:
        raise InvalidInputError(f"version {version!r}", fix="write three numbers, such as 1.0.0") from error
    return major, minor, patch
