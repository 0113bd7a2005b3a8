"""Release checks: what a version that nobody looked at must satisfy before it is published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from pd1_builder.diff import diff_folders
from pd1_builder.stored_records import StoredRecords

# Fewer new values of a task say nothing about where they lie.
_FEWEST_FOR_DRIFT = 5


@dataclass(frozen=True)
class ReleaseChecks:
    """What may differ between a version and its parent. Errors in raw rows have a limit of their own.

    Attributes:
      largest_loss: share of a task's records of the parent that may be gone.
      largest_duplicate_share: share of the added records that may repeat an input of their own task, as a
        file does that was delivered twice under other trial ids.
      largest_drift: how far the median of a task's added `y` may lie from the parent's, in interquartile
        ranges of the parent's. Error rates in percent shift -log(r) by 4.6.
    """

    largest_loss: float = 0.0
    largest_duplicate_share: float = 0.5
    largest_drift: float = 3.0

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
    """How a task changed from a version to the next.

    Attributes:
      task: its name.
      before: records in the parent.
      added: records that only the next version has.
      removed: records that only the parent has.
      repeated: added records whose input the task has more than once.
      drift: distance of the medians of the added `y` and of the parent's, in interquartile ranges of the
        parent's; NaN where there are fewer than 5 of either, or the parent's do not differ.
    """

    task: str
    before: int
    added: int
    removed: int
    repeated: int
    drift: float


def task_changes(parent: Path, folder: Path) -> tuple[TaskChange, ...]:
    """How each task changed from the version in a folder to the next in another.

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
    found = []
    for task in sorted({*old_tasks.tolist(), *new_tasks.tolist()}):
        here, was = is_added & (new_tasks == task), old_tasks == task
        found.append(
            TaskChange(
                task,
                before=int(was.sum()),
                added=int(here.sum()),
                removed=removed.get(task, 0),
                repeated=int((here & repeats).sum()),
                drift=drift(old_y[was], new_y[here]),
            )
        )
    return tuple(found)


def drift(before: Float64[np.ndarray, " n"], added: Float64[np.ndarray, " m"]) -> float:
    """Distance of two medians in interquartile ranges of the first sample; NaN where it says nothing.

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
    """Hold a version to the checks.

    Args:
      parent: folder of the version that it follows.
      folder: its own folder.
      checks: the limits.

    Returns:
      How each task changed.

    Raises:
      InvalidInputError: a limit is exceeded; says which, by how much, for which task.
      NotAvailableError, VersionConflictError: as `task_changes`.
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
            fix="look at the new files, and raise the limit if they are right",
        )
    return changes
