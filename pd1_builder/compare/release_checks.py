"""What is checked before a version appears: its number, and how much changed since its parent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
from jaxtyping import Float64
from pydantic import AllowInfNan

from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.compare.diff import Bump, Changes, diff_folders
from pd1_builder.version.catalog import version_numbers
from pd1_builder.version.stored_records import StoredRecords

_COMPONENTS: tuple[Bump, ...] = get_args(Bump)
# Fewer new values of a task than this say nothing about a drift.
_FEWEST_FOR_DRIFT = 5


def check_number(parent: str, version: str, changes: Changes) -> None:
    """Check that a number is greater than its parent's, by the step that the changes require.

    A larger step than required is wrong too, because the number has to say what changed.

    Args:
      parent: number of the parent, such as `1.0.0`.
      version: the number to check.
      changes: what changed from the parent to the version.

    Raises:
      VersionConflictError: another number would be right; the message says which and why.
      InvalidInputError: a version is not three numbers.
    """
    old, new = version_numbers(parent), version_numbers(version)
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
        f"use {next_number(parent, changes.bump)}"
    )


def next_number(parent: str, bump: Bump) -> str:
    """The number after its parent's for a change of a kind.

    >>> next_number("1.2.3", "minor")
    '1.3.0'
    """
    numbers = version_numbers(parent)
    position = _COMPONENTS.index(bump)
    return ".".join(map(str, (*numbers[:position], numbers[position] + 1, *(0,) * (2 - position))))


@dataclass(frozen=True)
class ReleaseChecks:
    """How much may change from a parent to a version. Rejected rows have their own limit, `max_reject_share`.

    Attributes:
      largest_loss: share of the parent's records of a task that may be missing.
      largest_duplicate_share: share of the added records that may repeat an input of their task. A file that
        was delivered twice under different trial ids repeats all of them.
      largest_drift: how far the median of a task's added `y` may lie from the parent's median, in
        interquartile ranges of the parent's `y`. Error rates given in percent would shift -log(r) by 4.6.
    """

    largest_loss: float = 0.0
    largest_duplicate_share: float = 0.5
    largest_drift: Annotated[float, AllowInfNan()] = 3.0

    def __post_init__(self) -> None:
        for name in ("largest_loss", "largest_duplicate_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)}", where="checks", fix="give a share from 0 to 1"
                )
        if not self.largest_drift > 0:
            raise InvalidInputError(
                f"largest_drift = {self.largest_drift}", where="checks", fix="give a positive number"
            )


@dataclass(frozen=True)
class TaskChange:
    """How a task changed from a parent to a version: its numbers of records, and its drift.

    `before` is the number in the parent, and `repeated` that of added records whose input occurs more than
    once in the task. `drift` is that of the parent's `y` and the added `y`.
    """

    task: str
    before: int
    added: int
    removed: int
    repeated: int
    drift: float


def task_changes(parent: Path, folder: Path) -> tuple[TaskChange, ...]:
    """How each task changed from a parent to a version, both given by their folders.

    Raises:
      NotAvailableError: a folder holds no version.
      VersionConflictError: a version's files are not those of its manifest.
    """
    changes = diff_folders(parent, folder)
    removed: dict[str, int] = {}
    for (_, task), count in changes.removed.items():
        removed[task] = removed.get(task, 0) + count
    old, new = StoredRecords(parent), StoredRecords(folder)
    old_ids = set(old.trial_ids.to_pylist())
    is_added = np.array([trial not in old_ids for trial in new.trial_ids.to_pylist()], bool)
    old_tasks, new_tasks = (np.array(each.column("task").to_pylist()) for each in (old, new))
    old_y, new_y = (each.column("y").to_numpy(zero_copy_only=False) for each in (old, new))
    repeats = np.array([bool(ids) for ids in new.column("duplicates").to_pylist()], bool)
    by_task = []
    for task in sorted({*old_tasks.tolist(), *new_tasks.tolist()}):
        here, was = is_added & (new_tasks == task), old_tasks == task
        drifted = drift(old_y[was], new_y[here])
        counts = (int(was.sum()), int(here.sum()), removed.get(task, 0), int((here & repeats).sum()))
        by_task.append(TaskChange(task, *counts, drifted))
    return tuple(by_task)


def drift(before: Float64[np.ndarray, " n"], added: Float64[np.ndarray, " m"]) -> float:
    """Distance of the medians of two samples, in interquartile ranges of the first.

    NaN if either sample has fewer than 5 finite values, or the first has no spread.

    >>> drift(np.arange(101.0), np.full(5, 150.0))
    2.0
    """
    before, added = before[np.isfinite(before)], added[np.isfinite(added)]
    if min(len(before), len(added)) < _FEWEST_FOR_DRIFT:
        return float("nan")
    lower, median, upper = np.quantile(before, [0.25, 0.5, 0.75])
    if upper == lower:
        return float("nan")
    return float(abs(np.median(added) - median) / (upper - lower))


def check_release(parent: Path, folder: Path, checks: ReleaseChecks) -> tuple[TaskChange, ...]:
    """Check the version in a folder against its parent's by the limits, and return how each task changed.

    Raises:
      InvalidInputError: a limit is exceeded; the message says which, by how much, and for which task.
      NotAvailableError: a folder holds no version.
      VersionConflictError: a version's files are not those of its manifest.
    """
    changes = task_changes(parent, folder)
    wrong = []
    for each in changes:
        if each.removed > checks.largest_loss * each.before:
            wrong.append(f"{each.task} lost {each.removed} of {each.before} records")
        if each.drift > checks.largest_drift:
            wrong.append(
                f"the median y of {each.added} records added to {each.task} lies {each.drift:.1f} "
                f"interquartile ranges from that of its {each.before} others, more than "
                f"{checks.largest_drift:g}"
            )
    added, repeated = (sum(getattr(each, name) for each in changes) for name in ("added", "repeated"))
    if repeated > checks.largest_duplicate_share * added:
        wrong.append(
            f"{repeated} of {added} records added repeat an input of their task, more than a share of "
            f"{checks.largest_duplicate_share:g}"
        )
    if wrong:
        raise InvalidInputError(
            "; ".join(wrong),
            where=f"{folder.parent.parent.name}/{folder.parent.name}:{folder.name}",
            fix="look at the new files; if they are right, raise the limit",
        )
    return changes
