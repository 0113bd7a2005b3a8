"""The arrays the method works on: tasks, matched blocks, and the tuning data that holds them together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
from jaxtyping import Bool, Float64

from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError


@dataclass(frozen=True)
class Task:
    """Observations of one function to be maximised.

    Attributes:
      name: name of the task.
      dataset: its task dataset; tasks that share it are held out together.
      x: inputs in the unit cube.
      y: warped objective, finite, to be maximised.
      objective: the raw objective that `y` was warped from, in its own unit (an error rate, for PD1).
      trial_ids: the trials behind the rows.
    """

    name: str
    dataset: str
    x: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    objective: Float64[np.ndarray, " n"]
    trial_ids: tuple[str, ...]

    def __repr__(self) -> str:
        """What it is, without its arrays."""
        return f"Task({self.name!r}, dataset={self.dataset!r}, trials={len(self.y)})"

    def __post_init__(self) -> None:
        where = f"task {self.name!r}"
        if len(self.y) == 0:
            raise InvalidInputError(
                "no trial with a finite objective is left", where=where, fix="leave the task out"
            )
        if not (len(self.x) == len(self.y) == len(self.objective) == len(self.trial_ids)):
            raise InvalidInputError("x, y, objective and trial_ids differ in length", where=where)
        if not (np.isfinite(self.x).all() and np.isfinite(self.y).all()):
            raise InvalidInputError("x or y is not finite", where=where, fix="drop or impute diverged trials")


@dataclass(frozen=True)
class MatchedBlock:
    """The same inputs observed on several tasks, section 5.2.1.

    Attributes:
      tasks: names of the N tasks, the columns of `y`.
      x: the M shared inputs in the unit cube.
      y: warped objective; NaN where the task's trial diverged.
    """

    tasks: tuple[str, ...]
    x: Float64[np.ndarray, "m d"]
    y: Float64[np.ndarray, "m n"]

    def __repr__(self) -> str:
        """What it is, without its arrays."""
        return f"MatchedBlock(inputs={len(self.x)}, tasks={len(self.tasks)})"

    def __post_init__(self) -> None:
        if self.y.shape != (len(self.x), len(self.tasks)):
            raise InvalidInputError(
                f"y has the shape {self.y.shape}, not {(len(self.x), len(self.tasks))}: inputs, tasks",
                where="matched block",
            )

    def only(self, tasks: Collection[str]) -> MatchedBlock:
        """Keep the tasks named, and all inputs: those that diverged on a task stay until `complete`."""
        columns = [i for i, name in enumerate(self.tasks) if name in set(tasks)]
        return MatchedBlock(tuple(self.tasks[i] for i in columns), self.x, self.y[:, columns])

    def complete(self, tasks: Collection[str]) -> MatchedBlock:
        """Keep the tasks named, and of the inputs those that diverged on none of them."""
        block = self.only(tasks)
        kept = np.isfinite(block.y).all(axis=1)
        return MatchedBlock(block.tasks, self.x[kept], block.y[kept])


@dataclass(frozen=True)
class Provenance:
    """What tuning data was made from: written into every artefact that is made from it.

    Attributes:
      dataset: dataset and version, `name/config:version`.
      manifest_hash: identity of the version, a hash over its records.
      preparation: named reading of the version.
    """

    dataset: str
    manifest_hash: str
    preparation: str


@dataclass(frozen=True)
class TuningData:
    """Tasks over one search space, with the matched blocks found among their trials.

    While tasks are selected, blocks keep the inputs that diverged on some of them: a task that is left out
    afterwards must not decide what the others are matched at. What is learned from is `complete_blocks`.
    """

    search_space: SearchSpace
    tasks: tuple[Task, ...]
    blocks: tuple[MatchedBlock, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        """What it is, without its tasks and blocks."""
        trials = sum(len(task.y) for task in self.tasks)
        return (
            f"TuningData({self.provenance.dataset!r}, preparation={self.provenance.preparation!r}, "
            f"tasks={len(self.tasks)}, trials={trials}, blocks={len(self.blocks)})"
        )

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InvalidInputError("tuning data needs at least one task", where=self.provenance.dataset)
        names = [task.name for task in self.tasks]
        if len(set(names)) != len(names):
            raise InvalidInputError(f"task names repeat: {names}", where=self.provenance.dataset)
        for place, x in (
            *((f"task {task.name!r}", task.x) for task in self.tasks),
            *(("matched block", block.x) for block in self.blocks),
        ):
            if x.shape[1] != self.search_space.dimension or not ((x >= 0) & (x <= 1)).all():
                raise InvalidInputError(
                    f"x is no set of points of the unit cube of dimension {self.search_space.dimension}",
                    where=f"{self.provenance.dataset}: {place}",
                    fix="map raw values by the search space",
                )

    @property
    def task_datasets(self) -> tuple[str, ...]:
        """The task datasets, sorted."""
        return tuple(sorted({task.dataset for task in self.tasks}))

    def task(self, name: str) -> Task:
        """The task of that name.

        Raises:
          InvalidInputError: there is none.
        """
        self.require([name])
        return next(task for task in self.tasks if task.name == name)

    def require(self, names: Collection[str]) -> None:
        """Raise an InvalidInputError where a name is no task."""
        unknown = sorted(set(names) - {task.name for task in self.tasks})
        if unknown:
            known = [task.name for task in self.tasks]
            near = [f"did you mean {name!r}? " for name in get_close_matches(unknown[0], known, n=1)]
            raise InvalidInputError(
                f"no task {', '.join(map(repr, unknown))}",
                where=self.provenance.dataset,
                fix=f"{''.join(near)}use some of {', '.join(known)}",
            )

    @property
    def complete_blocks(self) -> tuple[MatchedBlock, ...]:
        """The matched blocks without the inputs that diverged on one of the tasks; empty ones go."""
        names = [task.name for task in self.tasks]
        blocks = (block.complete(names) for block in self.blocks)
        return tuple(block for block in blocks if len(block.tasks) >= 2 and len(block.x) >= 1)

    @property
    def spread(self) -> float:
        """The median over tasks of the standard deviation of y; 1 where it is 0, as for flat functions."""
        # Values whose squares overflow end in an error of the method that uses them, not in a warning here.
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.median([np.std(task.y) for task in self.tasks])) or 1.0

    def with_tasks(self, tasks: tuple[Task, ...]) -> TuningData:
        """These of its tasks, with the blocks that at least two of them share."""
        names = {task.name for task in tasks}
        blocks = (block.only(names) for block in self.blocks)
        return replace(self, tasks=tasks, blocks=tuple(block for block in blocks if len(block.tasks) >= 2))

    def hold_out(self, dataset: str) -> TuningData:
        """Training data for tests on a task dataset: all that shares it is removed ("held-out related").

        Raises:
          InvalidInputError: no task has that dataset, or nothing would be left.
        """
        if dataset not in self.task_datasets:
            raise InvalidInputError(
                f"no task has the dataset {dataset!r}", fix=f"use one of {', '.join(self.task_datasets)}"
            )
        kept = tuple(task for task in self.tasks if task.dataset != dataset)
        if not kept:
            raise InvalidInputError(f"holding out {dataset!r} leaves no task to train on")
        return self.with_tasks(kept)


@dataclass(frozen=True)
class PaddedTasks:
    """Unequal tasks stacked into rectangles; rows where `mask` is false are padding and count for nothing."""

    x: Float64[np.ndarray, "t n d"]
    y: Float64[np.ndarray, "t n"]
    mask: Bool[np.ndarray, "t n"]


def pad_tasks(tasks: Sequence[Task], longest: int | None = None) -> PaddedTasks:
    """Stack tasks, padding each to the length `longest`; None: that of the longest of them."""
    return pad_pairs([(task.x, task.y) for task in tasks], longest)


def pad_pairs(
    pairs: Sequence[tuple[Float64[np.ndarray, "_ d"], Float64[np.ndarray, " _"]]], longest: int | None = None
) -> PaddedTasks:
    """Stack the inputs and values of tasks, as `pad_tasks` does."""
    longest = longest or max(len(y) for _, y in pairs)
    padded = PaddedTasks(
        np.zeros((len(pairs), longest, pairs[0][0].shape[1])),
        np.zeros((len(pairs), longest)),
        np.zeros((len(pairs), longest), bool),
    )
    for row, (x, y) in enumerate(pairs):
        own = np.s_[row, : len(y)]
        padded.x[own], padded.y[own], padded.mask[own] = x, y, True
    return padded
