from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gp_cases import SPACE, make_task
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperbo.data.partition import Partition, all_inputs, covering_tree, kmeans, partitioned_blocks
from hyperbo.data.tuning_data import Provenance, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.pretrain import EKLTraining, Job, pretrain_ekl

CORNERS = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.9]])


def blobs(seed: int, each: int, corners: np.ndarray = CORNERS) -> np.ndarray:
    """Points within 0.05 of corners that are 0.8 apart."""
    random = np.random.default_rng(seed)
    points = np.repeat(corners, each, axis=0)
    return random.permutation(points + random.uniform(-0.05, 0.05, points.shape))


def data_of(*xs: np.ndarray) -> TuningData:
    """Task i has y = 10 i + (number of the corner) + noise of mean zero in every corner."""
    tasks = []
    for number, x in enumerate(xs):
        corner = np.argmin(((x[:, None] - CORNERS) ** 2).sum(axis=2), axis=1)
        noise = np.zeros(len(x))
        for cell in np.unique(corner):
            rows = np.flatnonzero(corner == cell)
            noise[rows] = np.linspace(-1.0, 1.0, len(rows)) if len(rows) > 1 else 0.0
        tasks.append(make_task(f"t{number}", f"d{number}", x, 10.0 * number + corner + noise))
    return TuningData(SPACE, tuple(tasks), (), Provenance("case/blobs:1.0.0", "hash", "paper"))


def by_corner(representatives: np.ndarray) -> np.ndarray:
    return np.argmin(((representatives[:, None] - CORNERS) ** 2).sum(axis=2), axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_finds_blobs_and_their_means(seed: int) -> None:
    points = blobs(0, each=30)
    found = kmeans(points, 4, seed).representatives
    corner = by_corner(points)
    assert sorted(by_corner(found)) == [0, 1, 2, 3]
    for representative, number in zip(found, by_corner(found), strict=True):
        np.testing.assert_allclose(representative, points[corner == number].mean(axis=0), rtol=1e-12)


def test_partitions_are_the_same_for_the_same_seed_only() -> None:
    points = np.random.default_rng(0).random((300, 2))
    first, again, other = kmeans(points, 7, 1), kmeans(points, 7, 1), kmeans(points, 7, 2)
    np.testing.assert_array_equal(first.representatives, again.representatives)
    assert not np.array_equal(first.representatives, other.representatives)
    np.testing.assert_array_equal(covering_tree(points, 0.2).centres, covering_tree(points, 0.2).centres)


def test_as_many_cells_as_points_leave_the_points_alone() -> None:
    points = np.random.default_rng(1).random((9, 2))
    found = kmeans(np.concatenate([points, points[:4]]), 9, 0).representatives
    np.testing.assert_array_equal(sorted(map(tuple, found)), sorted(map(tuple, points)))


def test_cells_are_those_of_the_nearest_representative() -> None:
    random = np.random.default_rng(2)
    representatives, x = random.random((11, 3)), random.random((5000, 3))
    expected = [min(range(11), key=lambda k: np.linalg.norm(row - representatives[k])) for row in x]
    assert Partition(representatives).cells(x).tolist() == expected


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 4), st.floats(0.05, 1.5))
@settings(max_examples=50)
def test_every_level_of_a_covering_tree_covers_and_separates(
    seed: int, count: int, dimension: int, radius: float
) -> None:
    points = np.random.default_rng(seed).random((count, dimension))
    tree = covering_tree(points, 0.05)
    assert tree.smallest_radius == 0.05
    finer, level = (tree.partition(r).representatives for r in (0.05, radius))
    distances = np.linalg.norm(points[:, None] - level[None], axis=2)
    assert distances.min(axis=1).max() <= radius
    between = np.linalg.norm(level[:, None] - level[None], axis=2)
    assert (between[~np.eye(len(level), dtype=bool)] > radius).all()
    # Levels are nested, and every centre hangs below an earlier one at the distance recorded.
    np.testing.assert_array_equal(finer[: len(level)], level)
    for number in range(1, len(tree.centres)):
        assert tree.parents[number] < number
        separation = np.linalg.norm(tree.centres[number] - tree.centres[tree.parents[number]])
        assert separation == pytest.approx(tree.separations[number])
    assert (np.diff(tree.separations[1:]) <= 1e-15).all()


@pytest.mark.parametrize("strategy", ["kmeans", "covering tree"])
def test_a_block_holds_the_mean_of_every_task_in_every_cell(strategy: str) -> None:
    data = data_of(blobs(1, 5), blobs(2, 9), blobs(3, 1))
    points = all_inputs(data.tasks)
    partition = kmeans(points, 4, 0) if strategy == "kmeans" else covering_tree(points, 0.3).partition(0.3)
    (block,) = partitioned_blocks(data, partition)
    assert block.tasks == ("t0", "t1", "t2")
    np.testing.assert_array_equal(block.x, partition.representatives)
    expected = by_corner(block.x)[:, None] + 10.0 * np.arange(3)
    np.testing.assert_allclose(block.y, expected, atol=1e-12)
    order = np.random.default_rng(0).permutation(len(data.tasks[1].y))
    one = data.tasks[1]
    permuted = make_task(one.name, one.dataset, one.x[order], one.y[order])
    shuffled = replace(data, tasks=(data.tasks[0], permuted, data.tasks[2]))
    np.testing.assert_allclose(partitioned_blocks(shuffled, partition)[0].y, block.y, atol=1e-12)


def test_cells_seen_by_enough_tasks_form_a_block_for_each_set_of_tasks() -> None:
    data = data_of(
        blobs(1, 3), blobs(2, 3, CORNERS[:3]), blobs(3, 3, CORNERS[[0, 1, 3]]), blobs(4, 2, CORNERS[:1])
    )
    partition = Partition(CORNERS)
    (all_tasks,) = partitioned_blocks(data, partition)
    np.testing.assert_array_equal(all_tasks.x, CORNERS[:1])
    blocks = partitioned_blocks(data, partition, minimum_tasks=2)
    found = {block.tasks: by_corner(block.x).tolist() for block in blocks}
    assert found == {
        ("t0", "t1", "t2", "t3"): [0],
        ("t0", "t1", "t2"): [1],
        ("t0", "t1"): [2],
        ("t0", "t2"): [3],
    }
    assert [len(block.tasks) for block in blocks] == [4, 3, 2, 2]
    assert all(np.isfinite(block.y).all() for block in blocks)
    np.testing.assert_allclose(blocks[1].y, [[1.0, 11.0, 21.0]], atol=1e-12)


@pytest.mark.slow
def test_ekl_trains_on_a_partition() -> None:
    data = data_of(blobs(1, 5), blobs(2, 9), blobs(3, 2))
    found = replace(data, blocks=partitioned_blocks(data, kmeans(all_inputs(data.tasks), 4, 0)))
    (model,) = pretrain_ekl([Job(found, 0)], Architecture((4,)), EKLTraining(iterations=10))
    assert model.losses[-1] < model.losses[0] - 1.0


def test_partitions_that_cannot_be() -> None:
    points, data = np.zeros((5, 2)), data_of(blobs(1, 2, CORNERS[:2]), blobs(2, 2, CORNERS[2:]))
    with pytest.raises(InvalidInputError, match="give a number of cells from 1 to 1"):
        kmeans(points, 2, 0)
    with pytest.raises(InvalidInputError, match="0 cells"):
        kmeans(points, 0, 0)
    for smallest in (0.0, float("nan")):
        with pytest.raises(InvalidInputError, match="smallest_radius"):
            covering_tree(points, smallest)
    with pytest.raises(InvalidInputError, match="0 points"):
        covering_tree(np.zeros((0, 2)), 0.1)
    for finer in (0.0, 0.09, float("nan")):
        with pytest.raises(InvalidInputError, match=r"radius = .* less than the smallest of the tree, 0.1"):
            covering_tree(points, 0.1).partition(finer)
    with pytest.raises(InvalidInputError, match="none of 4 cells was observed by 2 tasks; use a coarser"):
        partitioned_blocks(data, Partition(CORNERS))
    for needed in (1, 3):
        with pytest.raises(InvalidInputError, match=f"cannot ask for {needed} of 2 tasks"):
            partitioned_blocks(data, Partition(CORNERS), minimum_tasks=needed)
