"""Which tasks a prior can be trained on, and by which method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import matched_block, tuning_data, with_blocks
from hyperbo_flows.experiments.choose_training import (
    FEWEST_TRIALS,
    TASKS_PER_STEP,
    choose_method,
    few_trials,
    usable_tasks,
)

from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError

DATA = tuning_data()
MATCHED = with_blocks(DATA, matched_block(("t0", "t1"), 4, 0))


def with_objective(data: TuningData, place: int, objective: np.ndarray | float) -> TuningData:
    tasks = list(data.tasks)
    values = np.broadcast_to(np.asarray(objective, float), tasks[place].objective.shape)
    tasks[place] = replace(tasks[place], objective=values)
    return data.with_tasks(tuple(tasks))


def test_h_nll_is_chosen_and_the_reason_says_what_the_tasks_share():
    apart, matched = choose_method(DATA), choose_method(MATCHED)
    assert apart.name == matched.name == "H-NLL"
    assert "3 tasks share no input" in apart.reason
    assert "share 4 inputs" in matched.reason


def test_a_step_costs_the_same_however_many_tasks_there_are():
    few, many = choose_method(DATA), choose_method(tuning_data((5,) * (TASKS_PER_STEP + 1)))
    assert few.method.method.training.tasks_per_step is None
    assert many.method.method.training.tasks_per_step == TASKS_PER_STEP


def test_the_user_may_want_another_method_where_it_can_be_trained():
    assert choose_method(MATCHED, "H-EKL").name == "H-EKL"
    with pytest.raises(InvalidInputError, match=r"case/tiny.*3 tasks share none; leave --method out"):
        choose_method(DATA, "H-EKL")
    with pytest.raises(InvalidInputError, match=r"STBO trains no prior .*; use H-NLL or H-EKL"):
        choose_method(DATA, "STBO")


def test_tasks_without_faults_are_used_as_they_are():
    data, lines = usable_tasks(DATA)
    assert data is DATA
    assert lines == []


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        (np.nan, "without a trial that has a value"),
        (np.array([0.5, np.nan, np.nan]), "with a single trial that has a value"),
        (0.5, "objective is the same in all trials"),
    ],
)
def test_a_task_that_teaches_nothing_is_left_out_with_its_name_and_the_reason(objective, reason):
    data, lines = usable_tasks(with_objective(MATCHED, 0, objective))
    assert [task.name for task in data.tasks] == ["t1", "t2"]
    # Only one task of the matched block is left.
    assert data.blocks == ()
    (line,) = lines
    assert "t0" in line
    assert reason in line


def test_failures_alone_are_refused():
    data = DATA
    for place in range(3):
        data = with_objective(data, place, np.nan)
    with pytest.raises(InvalidInputError, match=r"none of 22 trials of the 3 tasks has a value"):
        usable_tasks(data)


def test_tasks_that_teach_nothing_alone_are_refused_with_the_reasons():
    data = with_objective(with_objective(DATA, 0, 0.5), 1, np.nan)
    data = with_objective(data, 2, np.array([0.5, *[np.nan] * 6]))
    said = r"no task to learn from: .*same in all trials: t0; .*has a value: t1; .*single trial .*: t2; add"
    with pytest.raises(InvalidInputError, match=said):
        usable_tasks(data)


def test_few_trials_in_all_are_said_with_what_was_measured_of_as_few():
    (line,) = few_trials(DATA)
    assert "3 tasks with 22 trials" in line
    assert few_trials(tuning_data((FEWEST_TRIALS - 20, 20))) == []


def test_many_tasks_that_teach_nothing_are_named_in_part():
    data = tuning_data((5,) * 9)
    for place in range(6):
        data = with_objective(data, place, 1.0)
    _, (line,) = usable_tasks(data)
    assert "6 tasks" in line
    assert "t0, t1, t2 and 3 more" in line
