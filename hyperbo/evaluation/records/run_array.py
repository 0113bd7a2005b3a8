"""Run records as an array by method, task, seed and iteration; missing runs, and what can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.metadata import EvaluationMetadata, check_records_belong
from hyperbo.evaluation.records.runs import validate_records

Values = Float64[np.ndarray, "methods tasks seeds iterations"]


@dataclass(frozen=True)
class RunArray:
    """A quantity of every run at every iteration, for example y or regret.

    Attributes:
      methods: labels of the first axis.
      tasks: labels of the second axis.
      seeds: labels of the third axis.
      values: the quantity; NaN where a run has no record.
    """

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    values: Values

    def __post_init__(self) -> None:
        labelled = (len(self.methods), len(self.tasks), len(self.seeds))
        if self.values.shape[:3] != labelled:
            raise InvalidInputError(f"values of shape {self.values.shape} for labels of {labelled}")

    @property
    def iterations(self) -> int:
        """Number of iterations T."""
        return self.values.shape[3]

    @property
    def complete(self) -> Bool[np.ndarray, "methods tasks"]:
        """Whether the method finished all iterations on the task, with every seed."""
        return np.asarray(np.isfinite(self.values).all(axis=(2, 3)))

    def require_complete(self) -> Values:
        """The values, if no run is missing.

        Raises:
          InvalidInputError: a run is missing, so an aggregate would mix different tasks or seeds.
        """
        if not self.complete.all():
            raise InvalidInputError(
                f"runs are missing: {'; '.join(map(str, missing_arms(self)))}",
                fix="aggregate over comparable(...)",
            )
        return self.values

    def at(self, iteration: int) -> Float64[np.ndarray, "methods tasks seeds"]:
        """The values after an iteration, counted from 1.

        Raises:
          InvalidInputError: the runs have no such iteration.
        """
        if not 1 <= iteration <= self.iterations:
            raise InvalidInputError(f"no iteration {iteration}", fix=f"use 1 to {self.iterations}")
        return self.values[..., iteration - 1]

    def method_index(self, method: str) -> int:
        """Position of a method on the first axis; raises InvalidInputError if there is no such method."""
        if method not in self.methods:
            raise InvalidInputError(f"no method {method!r}", fix=f"use one of {', '.join(self.methods)}")
        return self.methods.index(method)

    def select(self, methods: Sequence[str], tasks: Sequence[str]) -> RunArray:
        """The part of these methods and tasks, in this order."""
        rows = [self.method_index(method) for method in methods]
        columns = [self.tasks.index(task) for task in tasks]
        values = self.values[np.ix_(rows, columns)]
        return RunArray(tuple(methods), tuple(tasks), self.seeds, values)


def arrange_records(records: pd.DataFrame, column: str, metadata: EvaluationMetadata) -> RunArray:
    """Arrange a column of run records by method, task, seed and iteration, as the metadata order them.

    NaN for a missing record.

    Raises:
      InvalidInputError: the records are invalid or belong to another evaluation.
    """
    validate_records(records)
    check_records_belong(records, metadata)
    methods, tasks, seeds = tuple(metadata["methods"]), tuple(metadata["tasks"]), tuple(metadata["seeds"])
    values = np.full((len(methods), len(tasks), len(seeds), metadata["iterations"]), np.nan)
    position = (
        pd.Index(methods).get_indexer(pd.Index(records["method"])),
        pd.Index(tasks).get_indexer(pd.Index(records["task"])),
        pd.Index(seeds).get_indexer(pd.Index(records["seed"])),
        records["iteration"].to_numpy() - 1,
    )
    values[position] = records[column].to_numpy(np.float64)
    return RunArray(methods, tasks, seeds, values)


@dataclass(frozen=True)
class MissingArm:
    """A method on a task, with the seeds whose run is missing or ended before the last iteration."""

    method: str
    task: str
    seeds: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.method} on {self.task}, {seed_phrase(self.seeds)}"


def seed_phrase(seeds: Sequence[int]) -> str:
    """Seeds in words.

    >>> seed_phrase([0]), seed_phrase([0, 2])
    ('seed 0', 'seeds 0, 2')
    """
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"


def missing_arms(array: RunArray) -> tuple[MissingArm, ...]:
    """Every method and task with a missing or incomplete run, and the seeds of these runs."""
    lacking = np.asarray(~np.isfinite(array.values).all(axis=3))
    return tuple(
        MissingArm(method, task, tuple(np.array(array.seeds)[lacking[i, j]].tolist()))
        for i, method in enumerate(array.methods)
        for j, task in enumerate(array.tasks)
        if lacking[i, j].any()
    )


def any_comparable(array: RunArray) -> bool:
    """Whether `comparable` has a result: a task that all methods completed which completed any task."""
    return bool(_compared_and_shared(array)[1].any())


def comparable(array: RunArray) -> RunArray:
    """Restrict to the tasks that all methods completed with all seeds.

    A method that completed no task is left out first: otherwise no task would remain. What is left out counts
    neither as a loss nor as a win; `missing_arms` names it.

    Raises:
      InvalidInputError: no task was completed by all the methods.
    """
    compared, shared = _compared_and_shared(array)
    if not shared.any():
        raise InvalidInputError(
            f"no task was completed by all methods ({len(missing_arms(array))} arms are missing)",
            where="run records",
            fix="run what is missing, or leave out the methods that lack most",
        )
    return array.select(
        [method for method, kept in zip(array.methods, compared, strict=True) if kept],
        [task for task, kept in zip(array.tasks, shared, strict=True) if kept],
    )


def _compared_and_shared(array: RunArray) -> tuple[Bool[np.ndarray, " methods"], Bool[np.ndarray, " tasks"]]:
    """Masks of the methods that completed any task, and of the tasks that all these methods completed."""
    complete = array.complete
    compared = np.asarray(complete.any(axis=1))
    return compared, np.asarray(complete[compared].all(axis=0)) & compared.any()
