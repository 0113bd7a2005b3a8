from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import matched_block, tuning_data, with_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.data.subsets import at_most_points, fewer_tasks, only_tasks
from hyperbo.errors import InvalidInputError

DATA = with_blocks(
    tuning_data((3, 12, 7, 9)),
    matched_block(("t0", "t1", "t2"), 6, seed=0),
    matched_block(("t1", "t3"), 5, seed=1),
)
NAMES = tuple(task.name for task in DATA.tasks)


def names(data):
    return [task.name for task in data.tasks]


def inputs(data):
    """Every matched input, as the pair of its coordinates."""
    return {tuple(x) for block in data.blocks for x in block.x.tolist()}


def test_only_the_named_tasks_are_left_with_the_blocks_that_they_share():
    kept = only_tasks(DATA, {"t3", "t1"})
    assert names(kept) == ["t1", "t3"]
    (block,) = kept.blocks  # of the first block one task is left: nothing is matched there
    assert block.tasks == ("t1", "t3")
    np.testing.assert_array_equal(block.y, DATA.blocks[1].y)
    assert kept.provenance == DATA.provenance


def diverged():
    """The first block alone: t0 diverged at its first input, t2 at the second."""
    whole = DATA.blocks[0]
    y = whole.y.copy()
    y[0, 0] = y[1, 2] = np.nan
    return with_blocks(DATA, replace(whole, y=y))


def test_inputs_that_diverged_on_a_kept_task_are_no_longer_matched():
    data = diverged()
    (kept,) = only_tasks(data, ("t0", "t1")).complete_blocks
    np.testing.assert_array_equal(kept.x, data.blocks[0].x[1:])
    assert inputs(at_most_points(only_tasks(data, ("t0", "t1")), 12, 0)) == {*map(tuple, kept.x.tolist())}


def test_a_task_that_is_left_out_later_does_not_decide_which_inputs_are_matched():
    data = diverged()
    step_by_step = only_tasks(only_tasks(data, ("t0", "t1", "t2")), ("t1", "t2"))
    (kept,) = step_by_step.complete_blocks
    np.testing.assert_array_equal(kept.x, data.blocks[0].x[[0, 2, 3, 4, 5]])
    np.testing.assert_array_equal(kept.y, data.blocks[0].y[[0, 2, 3, 4, 5]][:, 1:])


@settings(max_examples=25)
@given(st.sets(st.sampled_from(NAMES), min_size=1), st.sets(st.sampled_from(NAMES), min_size=1))
def test_tasks_left_out_in_two_steps_are_as_left_out_in_one(first, second):
    data = diverged()
    step_by_step = only_tasks(only_tasks(data, first | second), second)
    at_once = only_tasks(data, second)
    assert names(step_by_step) == names(at_once)
    for one, other in zip(step_by_step.complete_blocks, at_once.complete_blocks, strict=True):
        assert one.tasks == other.tasks
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)


@settings(max_examples=25)
@given(st.integers(1, 14), st.integers(0, 5))
def test_at_most_so_many_points_are_kept_of_every_task_and_of_all_blocks_together(count, seed):
    few = at_most_points(DATA, count, seed)
    assert names(few) == list(NAMES)
    for before, after in zip(DATA.tasks, few.tasks, strict=True):
        assert len(after.y) == min(count, len(before.y))
        rows = [before.trial_ids.index(trial) for trial in after.trial_ids]
        assert rows == sorted(set(rows))
        for name in ("x", "y", "objective"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name)[rows])
    assert sum(len(block.x) for block in few.blocks) == min(count, 11)
    for block in few.blocks:
        (whole,) = (each for each in DATA.blocks if each.tasks == block.tasks)
        rows = [whole.x.tolist().index(x) for x in block.x.tolist()]
        np.testing.assert_array_equal(block.y, whole.y[rows])


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5))
def test_points_of_one_seed_are_nested(one, other, seed):
    fewer, more = (at_most_points(DATA, count, seed) for count in sorted((one, other)))
    for small, large in zip(fewer.tasks, more.tasks, strict=True):
        assert set(small.trial_ids) <= set(large.trial_ids)
    assert inputs(fewer) <= inputs(more)


def test_what_is_kept_of_a_task_depends_on_the_seed_and_not_on_the_other_tasks():
    alone = only_tasks(DATA, {"t1"})
    kept = {at_most_points(DATA, 4, seed).task("t1").trial_ids for seed in range(10)}
    assert len(kept) > 5
    found = at_most_points(alone, 4, 3).task("t1").trial_ids
    assert found == at_most_points(DATA, 4, 3).task("t1").trial_ids
    # Tasks of one size do not keep the same rows.
    same = tuning_data((40, 40))
    rows = [
        [int(trial.split("/")[1]) for trial in task.trial_ids] for task in at_most_points(same, 8, 0).tasks
    ]
    assert rows[0] != rows[1]


def test_points_are_drawn_uniformly():
    counts = np.zeros(12)
    for seed in range(600):
        for trial in at_most_points(DATA, 3, seed).task("t1").trial_ids:
            counts[int(trial.split("/")[1])] += 1
    # 150 expected of each row, standard deviation 10.6.
    np.testing.assert_allclose(counts, 150, atol=45)


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(0, 5), st.sets(st.sampled_from(NAMES)))
def test_the_tasks_to_be_dropped_first_go_before_all_others(count, seed, first):
    left = set(names(fewer_tasks(DATA, count, seed, first)))
    assert len(left) == count
    # One of the first is left only where they alone fill the number, or all others are still there.
    assert not left & first or set(NAMES) - first <= left
    if count > 1:
        assert set(names(fewer_tasks(DATA, count - 1, seed, first))) < left


def test_the_tasks_left_depend_on_the_seed():
    assert len({tuple(names(fewer_tasks(DATA, 2, seed))) for seed in range(20)}) == 6
    assert fewer_tasks(DATA, 4, 0) is DATA
    assert fewer_tasks(DATA, 9, 0, ("t1",)) is DATA


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda: only_tasks(DATA, {"t1", "t9"}), "case/tiny:1.0.0: no task 't9'; use some of t0, t1, t2, t3"),
        (lambda: only_tasks(DATA, ()), "no task is left"),
        (lambda: at_most_points(DATA, 0, 0), "at most 0 points per task; keep at least one"),
        (lambda: fewer_tasks(DATA, 0, 0), "0 training tasks; keep at least one"),
    ],
)
def test_nothing_to_learn_from_is_refused(take, message):
    with pytest.raises(InvalidInputError, match=message):
        take()
