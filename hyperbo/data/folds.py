"""Folds: which tasks are tested, and what a method may learn from before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hyperbo.data.subsets import only_tasks
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError


@dataclass(frozen=True)
class Fold:
    """Test tasks with the training data that their methods share.

    Attributes:
      name: what is held out.
      training: what a method may learn from; it holds no test task.
      tests: the test tasks, whole.
    """

    name: str
    training: TuningData
    tests: tuple[Task, ...]

    @property
    def related(self) -> tuple[str, ...]:
        """Names of the training tasks that share the task dataset of a test task."""
        datasets = {task.dataset for task in self.tests}
        return tuple(task.name for task in self.training.tasks if task.dataset in datasets)


def held_out_related(data: TuningData, not_tested: Collection[str] = ()) -> tuple[Fold, ...]:
    """One fold per task dataset: no training task shares the task dataset of a test task.

    Section 7.4.1 "Holding Out Relevant Tasks".

    Args:
      data: all tasks.
      not_tested: names of tasks that are trained on, but not tested.

    Raises:
      InvalidInputError: a name is no task, no task would be tested, or holding out leaves none to train on.
    """
    tested = _tested(data, not_tested)
    datasets = sorted({task.dataset for task in tested})
    return tuple(
        Fold(dataset, data.hold_out(dataset), tuple(task for task in tested if task.dataset == dataset))
        for dataset in datasets
    )


def all_but_test_task(data: TuningData, not_tested: Collection[str] = ()) -> tuple[Fold, ...]:
    """One fold per test task: all other tasks are trained on, those that share its dataset too.

    The setting of sections 7.4.3 and 7.4.4 "Effects of the Number of Training Datapoints", "... Tasks".

    Args:
      data: all tasks; at least two.
      not_tested: names of tasks that are trained on, but not tested.

    Raises:
      InvalidInputError: a name is no task, no task would be tested, or none would be left to train on.
    """
    names = {task.name for task in data.tasks}
    return tuple(
        Fold(task.name, only_tasks(data, names - {task.name}), (task,)) for task in _tested(data, not_tested)
    )


def given_split(data: TuningData, training: Collection[str], tests: Collection[str]) -> tuple[Fold]:
    """One fold of the tasks named, as a benchmark prescribes it: HPO-B's meta-train and meta-test tasks.

    Raises:
      InvalidInputError: a name is no task or on both sides, or a side is empty.
    """
    both = sorted(set(training) & set(tests))
    if both:
        raise InvalidInputError(
            f"tasks to train on and to test: {', '.join(both)}", where=data.provenance.dataset
        )
    tested = only_tasks(data, tests).tasks
    return (Fold("test", only_tasks(data, training), tested),)


def _tested(data: TuningData, not_tested: Collection[str]) -> tuple[Task, ...]:
    data.require(not_tested)
    tested = tuple(task for task in data.tasks if task.name not in not_tested)
    if not tested:
        raise InvalidInputError("no task is left to test", where=data.provenance.dataset)
    return tested
