from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import make_task, matched_block, tuning_data, with_blocks

from hyperbo.data.tuning_data import MatchedBlock, Task, pad_tasks
from hyperbo.errors import InvalidInputError

NAN = np.nan


def test_a_task_refuses_what_cannot_be_modelled() -> None:
    x, y = np.full((2, 2), 0.5), np.array([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="task 'digits': no trial with a finite objective is left"):
        make_task("digits", "digits", x[:0], y[:0])
    with pytest.raises(InvalidInputError, match="task 'digits': x or y is not finite"):
        make_task("digits", "digits", x, np.array([1.0, NAN]))
    with pytest.raises(InvalidInputError, match="x or y is not finite"):
        make_task("digits", "digits", np.array([[0.5, np.inf], [0.5, 0.5]]), y)
    with pytest.raises(InvalidInputError, match="differ in length"):
        Task("digits", "digits", x, y, y, ("0",))


def test_complete_keeps_inputs_that_diverged_on_none_of_the_named_tasks() -> None:
    block = MatchedBlock(
        ("a", "b", "c"),
        np.array([[0.1], [0.2], [0.3]]),
        np.array([[1.0, NAN, 3.0], [4.0, 5.0, 6.0], [NAN, 8.0, 9.0]]),
    )
    everything = block.complete(["c", "a", "b"])
    assert everything.tasks == ("a", "b", "c")  # the block's order
    np.testing.assert_array_equal(everything.x, [[0.2]])
    without_b = block.complete(["a", "c", "not in the block"])
    assert without_b.tasks == ("a", "c")
    np.testing.assert_array_equal(without_b.x, [[0.1], [0.2]])
    np.testing.assert_array_equal(without_b.y, [[1.0, 3.0], [4.0, 6.0]])


def test_what_is_shown_of_data_is_short() -> None:
    data = with_blocks(tuning_data((300, 400)), matched_block(("t0", "t1"), 60, seed=0))
    assert repr(data) == ("TuningData('case/tiny:1.0.0', preparation='paper', tasks=2, trials=700, blocks=1)")
    assert repr(data.tasks[0]) == "Task('t0', dataset='d0', trials=300)"
    assert repr(data.blocks) == "(MatchedBlock(inputs=60, tasks=2),)"


def test_holding_out_removes_every_task_of_the_dataset_from_tasks_and_blocks() -> None:
    data = tuning_data((3, 4, 5, 6))
    related = replace(data.tasks[3], dataset="d1")
    block = matched_block(("t0", "t1", "t2", "t3"), 6, seed=0)
    y = block.y.copy()
    y[0, 1] = y[1, 3] = y[2, 0] = NAN  # two inputs diverged on held-out tasks alone, one on a kept task
    data = with_blocks(
        replace(data, tasks=(*data.tasks[:3], related)),
        replace(block, y=y),
        matched_block(("t1", "t2"), 4, seed=1),
        MatchedBlock(("t0", "t2"), np.zeros((1, 2)), np.array([[NAN, 1.0]])),
    )
    assert data.task_datasets == ("d0", "d1", "d2")
    kept = data.hold_out("d1")
    assert [task.name for task in kept.tasks] == ["t0", "t2"]
    # The second block has one task left; all inputs of the others stay, because tasks may still be left out.
    assert [block.tasks for block in kept.blocks] == [("t0", "t2"), ("t0", "t2")]
    np.testing.assert_array_equal(kept.blocks[0].x, block.x)
    np.testing.assert_array_equal(kept.blocks[0].y, y[:, [0, 2]])
    # The third has no complete input: it cannot train.
    (complete,) = kept.complete_blocks
    np.testing.assert_array_equal(complete.x, block.x[[0, 1, 3, 4, 5]])
    np.testing.assert_array_equal(complete.y, block.y[[0, 1, 3, 4, 5]][:, [0, 2]])
    assert kept.provenance == data.provenance
    assert len(data.tasks) == 4


def test_what_cannot_be_held_out_or_found() -> None:
    data = tuning_data((3, 4))
    with pytest.raises(InvalidInputError, match="no task has the dataset 'mnist'; use one of d0, d1"):
        data.hold_out("mnist")
    with pytest.raises(InvalidInputError, match="holding out 'd0' leaves no task"):
        data.hold_out("d1").hold_out("d0")
    with pytest.raises(InvalidInputError, match="no task 't9'; use some of t0, t1"):
        data.task("t9")
    assert data.task("t1") is data.tasks[1]


def test_tuning_data_needs_tasks_of_different_names() -> None:
    data = tuning_data((3, 4))
    with pytest.raises(InvalidInputError, match=r"^case/tiny:1\.0\.0: tuning data needs at least one task"):
        replace(data, tasks=())
    with pytest.raises(InvalidInputError, match="task names repeat"):
        replace(data, tasks=(data.tasks[0], data.tasks[0]))


def test_padding_keeps_every_observation_and_marks_the_rest() -> None:
    data = tuning_data((3, 5, 1))
    padded = pad_tasks(data.tasks)
    assert padded.x.shape == (3, 5, 2)
    for row, task in enumerate(data.tasks):
        np.testing.assert_array_equal(padded.x[row][padded.mask[row]], task.x)
        np.testing.assert_array_equal(padded.y[row][padded.mask[row]], task.y)
        np.testing.assert_array_equal(padded.mask[row], np.arange(5) < len(task.y))
        assert not padded.x[row][~padded.mask[row]].any()
