"""Folds: which tasks are tested, and what a method may learn from before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fnmatch import fnmatchcase

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


def chosen_tasks(data: TuningData, training: Sequence[str], tests: Sequence[str]) -> tuple[Fold, ...]:
    """Folds of tasks that are named: what is tested, and what is trained on.

    Each test task is tested by what was learned from the tasks named for training, never from itself. Test
    tasks that are not trained on share a fold, `test tasks`; each of the others has one of its own.

    Args:
      data: all tasks.
      training: names of tasks, or patterns of `fnmatch` with `*` and `?`; empty: all tasks.
      tests: names or patterns likewise.

    Raises:
      InvalidInputError: a name or pattern matches no task, or leaves a test task none to train on.
    """
    trained, tested = (matching_tasks(data, patterns or ("*",)) for patterns in (training, tests))
    apart = [name for name in tested if name not in trained]
    folds = [Fold("test tasks", only_tasks(data, trained), only_tasks(data, apart).tasks)] if apart else []
    for name in tested:
        if name in trained:
            others = [other for other in trained if other != name]
            if not others:
                raise InvalidInputError(
                    f"nothing to train on for {name!r}: it is the only task that is trained on",
                    where=data.provenance.dataset,
                    fix="train on more tasks, or test others",
                )
            folds.append(Fold(name, only_tasks(data, others), (data.task(name),)))
    return tuple(folds)


def matching_tasks(data: TuningData, patterns: Sequence[str]) -> tuple[str, ...]:
    """The names of the tasks that match any of the patterns, in the order of the data.

    Raises:
      InvalidInputError: a pattern matches no task; the message names the nearest.
    """
    names = [task.name for task in data.tasks]
    # A name is itself a pattern, also where it has a letter that means something in patterns.
    matched = {
        pattern: {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        for pattern in patterns
    }
    for pattern, found in matched.items():
        if not found:
            # Beginnings are compared: a name is longer than its pattern.
            near = max(names, key=lambda name: SequenceMatcher(None, pattern, name[: len(pattern)]).ratio())
            raise InvalidInputError(
                f"no task matches {pattern!r}", where=data.provenance.dataset, fix=f"the nearest is {near!r}"
            )
    return tuple(name for name in names if any(name in found for found in matched.values()))


def _tested(data: TuningData, not_tested: Collection[str]) -> tuple[Task, ...]:
    data.require(not_tested)
    tested = tuple(task for task in data.tasks if task.name not in not_tested)
    if not tested:
        raise InvalidInputError("no task is left to test", where=data.provenance.dataset)
    return tested
