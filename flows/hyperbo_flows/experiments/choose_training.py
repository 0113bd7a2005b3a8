"""How a prior for tuning is trained: on which tasks, by which method, for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hyperbo.bayesopt.online_methods import ONLINE_METHODS, Retrained
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.methods import HNLL
from hyperbo.pretrain import NLLTraining
from hyperbo.storage.printable import count

# Adam steps at most, and tasks drawn in each where there are more: a prior takes seconds however many tasks
# there are, and is no worse for it (docs/decisions/prior-worth.md).
STEPS, TASKS_PER_STEP = 2_000, 8
# Below so many trials in all, priors were ahead of none as often as not (docs/decisions/prior-worth.md).
FEWEST_TRIALS = 50
# In how many draws of tasks and trials a prior of fewer trials, and of as many or more, was ahead of none.
_AHEAD_WITH_FEW, _AHEAD_WITH_MORE = (82, 160), (561, 680)
# The names that messages list, at most.
_MOST_NAMED = 3


@dataclass(frozen=True)
class ChosenMethod:
    """A method for some training tasks, and why.

    Attributes:
      name: such as `H-NLL`.
      method: its settings.
      reason: a sentence for people.
    """

    name: str
    method: Retrained
    reason: str


def choose_method(data: TuningData, wanted: str | None = None) -> ChosenMethod:
    """Choose how a prior is trained on past trials.

    By default this is H-NLL, with matched inputs too: on PD1 mini H-EKL was no better where it can be used.

    Args:
      data: the training tasks.
      wanted: name of the method that the user wants; None: the choice is free.

    Raises:
      InvalidInputError: the method is unknown, trains no prior, or needs matched inputs that are not there.
    """
    name = wanted or "H-NLL"
    known = ONLINE_METHODS.get(name)
    if not isinstance(known, Retrained):
        names = [name for name, each in ONLINE_METHODS.items() if isinstance(each, Retrained)]
        raise InvalidInputError(f"{name} trains no prior for tuning", fix=f"use {' or '.join(names)}")
    inputs = sum(len(block.x) for block in data.complete_blocks)
    if not isinstance(known.method, HNLL):
        if not inputs:
            raise InvalidInputError(
                f"{name} needs inputs that several tasks have tried, and {_tasks(data)} share none",
                where=data.provenance.dataset,
                fix="leave --method out: H-NLL is taken, which needs none",
            )
        return ChosenMethod(name, known, f"{name}, as asked: tasks share {count(inputs, 'input')}")
    training = NLLTraining(
        steps=STEPS, tasks_per_step=TASKS_PER_STEP if len(data.tasks) > TASKS_PER_STEP else None
    )
    method = replace(known, method=replace(known.method, training=training))
    if wanted is not None:
        return ChosenMethod(name, method, f"{name}, as asked")
    if not inputs:
        why = f"{_tasks(data)} share no input" if len(data.tasks) > 1 else "there is one task"
        return ChosenMethod(name, method, f"{name}: {why}")
    reason = (
        f"{name}: tasks share {count(inputs, 'input')}, but H-EKL, which needs that, was measured no better"
    )
    return ChosenMethod(name, method, reason)


def usable_tasks(data: TuningData) -> tuple[TuningData, list[str]]:
    """The tasks that a prior can learn from, and lines on those that are left out.

    Args:
      data: tasks by the preparation `online`: infeasible trials have no objective.

    Returns:
      The tasks with at least two different objective values, and what is said of the others.

    Raises:
      InvalidInputError: no trial has a value, or no task has two different ones.
    """
    where = data.provenance.dataset
    names = [task.name for task in data.tasks]
    reasons = {task.name: _useless(task) for task in data.tasks}
    if all(reason == _NO_VALUE for reason in reasons.values()):
        trials = sum(len(task.y) for task in data.tasks)
        raise InvalidInputError(
            f"none of {count(trials, 'trial')} of {_tasks(data)} has a value: all failed or diverged",
            where=where,
            fix="add trials that have finished, or correct the objective of the space file",
        )
    lines = []
    for reason in dict.fromkeys(filter(None, reasons.values())):
        found = [name for name in names if reasons[name] == reason]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        lines.append(f"{count(len(found), 'task')} {reason}: {', '.join(found[:_MOST_NAMED])}{more}")
    kept = tuple(task for task in data.tasks if reasons[task.name] is None)
    if not kept:
        raise InvalidInputError(
            f"no task to learn from: {'; '.join(lines)}",
            where=where,
            fix="add trials with different results",
        )
    return (data.with_tasks(kept) if lines else data), [f"left out: {line}" for line in lines]


def few_trials(data: TuningData) -> list[str]:
    """A line where there are so few trials in all that a prior of them may well not help."""
    trials = sum(len(task.y) for task in data.tasks)
    if trials >= FEWEST_TRIALS:
        return []
    (ahead, draws), (ahead_of_more, more) = _AHEAD_WITH_FEW, _AHEAD_WITH_MORE
    return [
        f"few: {count(len(data.tasks), 'task')} with {count(trials, 'trial')} in all; in our measurements a "
        f"prior of fewer than {FEWEST_TRIALS} was ahead of none in {ahead} of {draws} draws, of more in "
        f"{ahead_of_more} of {more}"
    ]


_NO_VALUE = "without a trial that has a value"
_SINGLE = "with a single trial that has a value"
_CONSTANT = "whose objective is the same in all trials"


def _useless(task: Task) -> str | None:
    """Why nothing can be learned from a task; None where something can."""
    values = task.objective[np.isfinite(task.objective)]
    if not len(values):
        return _NO_VALUE
    if len(values) == 1:
        return _SINGLE
    return _CONSTANT if np.ptp(values) == 0.0 else None


def _tasks(data: TuningData) -> str:
    return f"the {count(len(data.tasks), 'task')}"
