from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import matched_block, tuning_data, with_blocks

from hyperbo.data.folds import all_but_test_task, chosen_tasks, given_split, held_out_related, matching_tasks
from hyperbo.errors import InvalidInputError

_TASKS = tuning_data((3, 4, 5, 6))
# t0 and t3 share a dataset.
DATA = with_blocks(
    replace(_TASKS, tasks=(*_TASKS.tasks[:3], replace(_TASKS.tasks[3], dataset="d0"))),
    matched_block(("t0", "t1", "t2", "t3"), 6, seed=0),
)


def names(tasks):
    return [task.name for task in tasks]


def described(folds):
    return {fold.name: (names(fold.training.tasks), names(fold.tests), fold.related) for fold in folds}


def test_related_tasks_are_held_out_together():
    assert described(held_out_related(DATA)) == {
        "d0": (["t1", "t2"], ["t0", "t3"], ()),
        "d1": (["t0", "t2", "t3"], ["t1"], ()),
        "d2": (["t0", "t1", "t3"], ["t2"], ()),
    }


def test_all_but_the_test_task_are_trained_on():
    assert described(all_but_test_task(DATA)) == {
        "t0": (["t1", "t2", "t3"], ["t0"], ("t3",)),
        "t1": (["t0", "t2", "t3"], ["t1"], ()),
        "t2": (["t0", "t1", "t3"], ["t2"], ()),
        "t3": (["t0", "t1", "t2"], ["t3"], ("t0",)),
    }


def test_a_task_that_is_not_tested_trains_all_the_same():
    related = described(held_out_related(DATA, ("t3", "t1")))
    assert related == {"d0": (["t1", "t2"], ["t0"], ()), "d2": (["t0", "t1", "t3"], ["t2"], ())}
    assert set(described(all_but_test_task(DATA, ("t3", "t1")))) == {"t0", "t2"}


def test_a_given_split_is_one_fold():
    (fold,) = given_split(DATA, ("t0", "t2"), ("t3",))
    assert described([fold]) == {"test": (["t0", "t2"], ["t3"], ("t0",))}


@pytest.mark.parametrize(
    "folds",
    [held_out_related(DATA), all_but_test_task(DATA), given_split(DATA, ("t1", "t2"), ("t0", "t3"))],
    ids=["related", "all but", "split"],
)
def test_no_value_of_a_test_task_is_in_the_training_data(folds):
    columns = dict(zip(DATA.blocks[0].tasks, DATA.blocks[0].y.T, strict=True))
    for fold in folds:
        learned = np.concatenate(
            [*(task.y for task in fold.training.tasks), *(block.y.ravel() for block in fold.training.blocks)]
        )
        for test in fold.tests:
            assert not np.isin(test.y, learned).any()
            assert not np.isin(columns[test.name], learned).any()


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (lambda: held_out_related(DATA, ("t9",)), "no task 't9'"),
        (lambda: all_but_test_task(DATA, ("t0", "t1", "t2", "t3")), "no task is left to test"),
        (lambda: all_but_test_task(replace(DATA, tasks=DATA.tasks[:1], blocks=())), "no task is left"),
        (lambda: given_split(DATA, ("t0", "t1"), ("t1",)), "tasks to train on and to test: t1"),
        (lambda: given_split(DATA, (), ("t1",)), "no task is left"),
    ],
)
def test_folds_that_cannot_be_are_refused(fold, message):
    with pytest.raises(InvalidInputError, match=message):
        fold()


def test_named_tasks_are_trained_on_and_tested_but_none_by_what_was_learned_from_it():
    assert described(chosen_tasks(DATA, ["t0", "t[12]"], ["t3", "t1"])) == {
        "test tasks": (["t0", "t1", "t2"], ["t3"], ("t0",)),
        "t1": (["t0", "t2"], ["t1"], ()),
    }
    assert described(chosen_tasks(DATA, ["t2", "t?"], ["t0"])) == {
        "t0": (["t1", "t2", "t3"], ["t0"], ("t3",))
    }
    # A side that is not given is all tasks.
    assert described(chosen_tasks(DATA, (), ())) == described(all_but_test_task(DATA))


def test_a_pattern_without_a_task_and_a_fold_without_training_are_refused():
    with pytest.raises(InvalidInputError, match="no task matches 't9_\\*'; the nearest is 't"):
        chosen_tasks(DATA, ["t*"], ["t1", "t9_*"])
    with pytest.raises(InvalidInputError, match="nothing to train on for 't1'"):
        chosen_tasks(DATA, ["t1"], ["t0", "t1"])
    bracket = replace(
        DATA, tasks=tuple(replace(task, name=f"{task.name}[a]") for task in DATA.tasks), blocks=()
    )
    assert matching_tasks(bracket, ["t1[a]"]) == ("t1[a]",)
