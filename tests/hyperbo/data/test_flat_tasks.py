"""Flat training functions, on tasks whose ranges are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.subsets import TOLERANCE, flat_tasks, without_flat
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.errors import InvalidInputError


def tuning_data(*values, blocks=()):
    tasks = []
    for number, y in enumerate(values):
        y = np.asarray(y, dtype=float)
        x = np.linspace(0, 1, len(y))[:, None]
        tasks.append(Task(f"task-{number}", f"dataset-{number}", x, y, y, tuple(map(str, range(len(y))))))
    space = SearchSpace((Parameter("a", 0.0, 1.0),))
    return TuningData(space, tuple(tasks), tuple(blocks), Provenance("hpob/5636:1.0.0", "", "observed"))


VARIED = [0.0, 1.0, 0.3], [2.0, 5.0, 4.0]


def test_constant_and_nearly_constant_functions_are_flat():
    data = tuning_data(*VARIED, [0.7, 0.7, 0.7], [0.7, 0.7 + 1e-9, 0.7], [0.1, 0.1 + 1e-3, 0.1])
    # The median range of the tasks that are not constant, 1e-9, 1e-3, 1 and 3, is 0.5005.
    assert flat_tasks(data) == ("task-2", "task-3")
    assert flat_tasks(data, 0.0) == ("task-2",)
    assert flat_tasks(data, 1.01e-3 / 0.5005) == ("task-2", "task-3", "task-4")
    assert flat_tasks(tuning_data(*VARIED), TOLERANCE) == ()


def test_a_share_allows_a_few_other_values():
    nearly = [0.7] * 18 + [0.1, 0.9]
    data = tuning_data(*VARIED, nearly)
    assert flat_tasks(data) == ()  # the paper's definition: all inputs
    assert flat_tasks(data, share=0.9) == flat_tasks(data, 0.0, 0.9) == ("task-2",)
    assert flat_tasks(tuning_data(*VARIED, [*nearly, 0.2]), share=0.9) == ()  # 18 of 21 are fewer than 90 %
    for share in (0.0, 1.1):
        with pytest.raises(InvalidInputError, match="share is"):
            flat_tasks(data, share=share)


def test_a_majority_of_flat_tasks_hides_nothing():
    data = tuning_data([0.0, 1.0], [0.5, 0.5], [0.2, 0.2], [0.3, 0.3 + 1e-12], [0.0, 2.0])
    assert flat_tasks(data) == ("task-1", "task-2", "task-3")


def test_a_single_trial_says_nothing():
    assert flat_tasks(tuning_data([0.5], [0.0, 1.0])) == ()


def test_flat_tasks_are_left_out_of_the_blocks_too():
    x = np.array([[0.0], [0.5], [1.0]])
    y = np.array([[0.0, 0.7, 2.0], [1.0, 0.7, np.nan], [0.3, np.nan, 4.0]])
    both = MatchedBlock(("task-0", "task-2", "task-1"), x, y)
    alone = MatchedBlock(("task-2", "task-1"), x, y[:, 1:])
    data = tuning_data(*VARIED, [0.7, 0.7, 0.7], blocks=(both, alone))
    left = without_flat(data)
    assert [task.name for task in left.tasks] == ["task-0", "task-1"]
    (block,) = left.blocks
    assert block.tasks == ("task-0", "task-1")
    np.testing.assert_array_equal(block.x, x)
    np.testing.assert_array_equal(block.y, y[:, [0, 2]])
    assert left.provenance == data.provenance
    assert without_flat(left) is left


def test_all_flat_and_a_bad_tolerance_are_errors():
    with pytest.raises(InvalidInputError, match=r"hpob/5636:1\.0\.0: all tasks are flat; keep them"):
        without_flat(tuning_data([0.5, 0.5], [1.0, 1.0]))
    for tolerance in (-1e-6, float("nan")):
        with pytest.raises(InvalidInputError, match="tolerance is"):
            flat_tasks(tuning_data(*VARIED), tolerance)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=4), min_size=1, max_size=5),
    st.integers(-8, 8),
    st.integers(-2, 2),
)
def test_scale_and_shift_do_not_matter(values, power, shift):
    # Powers of two and small integers, so that nothing is rounded.
    moved = [[2.0**power * value + shift for value in y] for y in values]
    assert flat_tasks(tuning_data(*values)) == flat_tasks(tuning_data(*moved))
