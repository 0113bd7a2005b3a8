"""Matched blocks from unmatched data: a partition of the input space, Section 5.2.3.

The paper names the idea and leaves the strategy open. Here each cell is the set of inputs nearest to its
representative; a task's value in a cell is the mean of its observations there; cells that the same tasks have
observed form a matched block. Two strategies give representatives: k-means, and a covering tree, after
Terenin et al., "Numerically Stable Sparse Gaussian Processes via Minimum Separation using Cover Trees".
"""

# Example: docs/examples/unmatched_data.py; measured on PD1 mini: benchmarks/partition.py.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from hyperbo.data.tuning_data import MatchedBlock, Task, TuningData
from hyperbo.errors import InvalidInputError

_LARGEST_NUMBER_OF_LLOYD_STEPS = 300
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Partition:
    """Non-overlapping cells that cover the input space.

    Attributes:
      representatives: one input per cell; a cell holds the inputs that are nearest to its representative.
    """

    representatives: Float64[np.ndarray, "k d"]

    def cells(self, x: Float64[np.ndarray, "n d"]) -> Int64[np.ndarray, " n"]:
        """The cell of each input, psi of the paper; of equally near representatives the first.

        >>> Partition(np.array([[0.0], [1.0]])).cells(np.array([[0.2], [0.9], [0.5]])).tolist()
        [0, 1, 0]
        """
        starts = range(0, len(x), _ROWS_AT_A_TIME)
        parts = (_squared_distances(x[i : i + _ROWS_AT_A_TIME], self.representatives) for i in starts)
        return np.concatenate([np.argmin(part, axis=1) for part in parts])


def kmeans(points: Float64[np.ndarray, "n d"], cells: int, seed: int) -> Partition:
    """Partition by k-means: Lloyd's algorithm from k-means++ starting points.

    Args:
      points: inputs of all tasks, together.
      cells: how many.
      seed: draws the starting points; the same seed gives the same partition.

    Raises:
      InvalidInputError: there are fewer different points than cells.
    """
    different = len(np.unique(points, axis=0))
    if not 1 <= cells <= different:
        raise InvalidInputError(
            f"cannot divide {different} different points into {cells} cells",
            fix=f"give a number of cells from 1 to {different}",
        )
    random = np.random.default_rng(seed)
    centres = points[random.integers(len(points))][None]
    nearest = _squared_distances(points, centres)[:, 0]
    while len(centres) < cells:
        chosen = points[random.choice(len(points), p=nearest / nearest.sum())][None]
        centres = np.concatenate([centres, chosen])
        nearest = np.minimum(nearest, _squared_distances(points, chosen)[:, 0])
    members = Partition(centres).cells(points)
    for _ in range(_LARGEST_NUMBER_OF_LLOYD_STEPS):
        before = members
        for cell in np.unique(members):
            centres[cell] = points[members == cell].mean(axis=0)
        # A mean of points of the unit cube may leave it by a rounding.
        centres = np.clip(centres, points.min(axis=0), points.max(axis=0))
        members = Partition(centres).cells(points)
        if (members == before).all():
            break
    return Partition(centres)


@dataclass(frozen=True)
class CoveringTree:
    """Points in an order in which the first k cover all points evenly, for every k.

    These are the levels of a covering tree.

    Attributes:
      centres: the points chosen; the first is the one nearest to the mean of all.
      separations: distance of each centre to the nearest before it, not increasing; infinite for the first.
      parents: the nearest centre before each; the first is its own.
      smallest_radius: of the finest level; a finer one would leave points uncovered.
    """

    centres: Float64[np.ndarray, "k d"]
    separations: Float64[np.ndarray, " k"]
    parents: Int64[np.ndarray, " k"]
    smallest_radius: float

    def partition(self, radius: float) -> Partition:
        """The level at a radius: each point is that near to a representative, and those are farther apart.

        Raises:
          InvalidInputError: the radius is less than `smallest_radius`.
        """
        if not radius >= self.smallest_radius:
            raise InvalidInputError(
                f"radius = {radius} is less than the smallest of the tree, {self.smallest_radius}",
                where="CoveringTree",
                fix="build the tree for the finest level that is needed",
            )
        return Partition(self.centres[self.separations > radius])


def covering_tree(points: Float64[np.ndarray, "n d"], smallest_radius: float) -> CoveringTree:
    """Build a covering tree by farthest-first traversal.

    Args:
      points: inputs of all tasks, together.
      smallest_radius: of its finest level; the time is that of (points x centres) distances.

    Raises:
      InvalidInputError: there is no point, or the radius is not positive.
    """
    if len(points) == 0 or not smallest_radius > 0.0:
        raise InvalidInputError(
            f"{len(points)} points, smallest_radius = {smallest_radius}", where="covering_tree"
        )
    first = int(np.argmin(_squared_distances(points, points.mean(axis=0)[None])[:, 0]))
    chosen, separations, parents = [first], [np.inf], [0]
    nearest = np.sqrt(_squared_distances(points, points[first][None])[:, 0])
    owners = np.zeros(len(points), np.int64)
    while nearest.max() > smallest_radius:
        farthest = int(np.argmax(nearest))
        separations.append(float(nearest[farthest]))
        parents.append(int(owners[farthest]))
        distances = np.sqrt(_squared_distances(points, points[farthest][None])[:, 0])
        owners = np.where(distances < nearest, len(chosen), owners)
        nearest = np.minimum(nearest, distances)
        chosen.append(farthest)
    return CoveringTree(points[chosen], np.array(separations), np.array(parents), smallest_radius)


def all_inputs(tasks: Sequence[Task]) -> Float64[np.ndarray, "n d"]:
    """The inputs of all tasks, together: what a partition is made from."""
    return np.concatenate([task.x for task in tasks])


def partitioned_blocks(
    data: TuningData, partition: Partition, minimum_tasks: int | None = None
) -> tuple[MatchedBlock, ...]:
    """Matched blocks from the tasks of tuning data, whatever their inputs.

    A cell belongs to one block: that of exactly the tasks which observed it. Eq. 8 (multi-kl) averages over
    blocks, not over cells.

    Args:
      data: its tasks are used, its matched blocks are not.
      partition: of the unit cube.
      minimum_tasks: how many tasks must have observed a cell for it to count; None: all of them.

    Returns:
      The blocks, those of most tasks first.

    Raises:
      InvalidInputError: no cell counts, or a block would have fewer than two tasks.
    """
    needed = len(data.tasks) if minimum_tasks is None else minimum_tasks
    if not 2 <= needed <= len(data.tasks):
        raise InvalidInputError(
            f"a cell cannot ask for {needed} of {len(data.tasks)} tasks",
            where="partitioned_blocks",
            fix="use two tasks or more",
        )
    means = np.column_stack([_cell_means(task, partition) for task in data.tasks])
    observed = np.isfinite(means)
    usable = observed.sum(axis=1) >= needed
    if not usable.any():
        raise InvalidInputError(
            f"none of {len(means)} cells was observed by {needed} tasks",
            where=data.provenance.dataset,
            fix="use a coarser partition, or ask for fewer tasks",
        )
    blocks = []
    for pattern in np.unique(observed[usable], axis=0):
        rows = usable & (observed == pattern).all(axis=1)
        names = tuple(task.name for task, here in zip(data.tasks, pattern, strict=True) if here)
        blocks.append(MatchedBlock(names, partition.representatives[rows], means[rows][:, pattern]))
    return tuple(sorted(blocks, key=lambda block: -len(block.tasks)))


def _cell_means(task: Task, partition: Partition) -> Float64[np.ndarray, " k"]:
    """Mean of a task's observations in each cell; NaN where it has none."""
    cells, count = partition.cells(task.x), len(partition.representatives)
    number = np.bincount(cells, minlength=count)
    total = np.bincount(cells, weights=task.y, minlength=count)
    return np.divide(total, number, out=np.full(count, np.nan), where=number > 0)


def _squared_distances(
    a: Float64[np.ndarray, "n d"], b: Float64[np.ndarray, "m d"]
) -> Float64[np.ndarray, "n m"]:
    return sum(
        (np.subtract.outer(a[:, axis], b[:, axis]) ** 2 for axis in range(a.shape[1])),
        np.zeros((len(a), len(b))),
    )
