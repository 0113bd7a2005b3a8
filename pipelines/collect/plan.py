"""What is trained: the blocks of trials of a collection, in two waves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from pipelines.collect.points import matched_points, unmatched_points
from pipelines.collect.preset import Preset

TrialSplit = Literal["matched", "unmatched"]
SPLITS: tuple[TrialSplit, ...] = ("matched", "unmatched")
# A task of which more than 4 in 5 trials diverge says little, and would be sampled for ever.
MOST_TRIALS_PER_GOOD_ONE = 5


class Block(NamedTuple):
    """Trials of one task that are trained as one program.

    Attributes:
      task: number of the task in the preset.
      split: which of the two sets the trials belong to.
      phase: 0 or 1.
      first: number of the first trial within task, split and phase.
      trials: how many, at most the preset's block size.
    """

    task: int
    split: TrialSplit
    phase: int
    first: int
    trials: int


def matched_blocks(preset: Preset, number: int, phase: int) -> Iterator[Block]:
    """The blocks of a task's matched trials; of a task for training only, the first ones of phase 0."""
    only = preset.tasks[number].training_only
    count = preset.matched if not only else only if phase == 0 else 0
    return _blocks(preset, number, "matched", phase, count)


def unmatched_blocks(preset: Preset, number: int, phase: int, good: int) -> Iterator[Block]:
    """The blocks of a task's unmatched trials: so many that the task ends with about `preset.good` good ones.

    How many are needed is told by the share of matched trials that diverged, so that all blocks are known
    before the first of them is trained.

    Args:
      preset: the collection.
      number: of the task in the preset.
      phase: 0 or 1.
      good: of the task's matched trials of this phase, how many did not diverge.

    Raises:
      InvalidInputError: nearly all of them diverged.
    """
    task = preset.tasks[number]
    if task.training_only:
        return iter(())
    if good * MOST_TRIALS_PER_GOOD_ONE < preset.matched:
        raise InvalidInputError(
            f"of {preset.matched} matched trials only {good} did not diverge",
            where=f"preset {preset.name!r}: task {task.study}",
            fix="make the task easier to train, or leave it out",
        )
    count = math.ceil(max(preset.good - good, 0) * preset.matched / good)
    return _blocks(preset, number, "unmatched", phase, count)


def block_points(preset: Preset, block: Block) -> Float64[np.ndarray, "p 4"]:
    """The raw hyperparameters of a block's trials."""
    task = preset.tasks[block.task]
    end = block.first + block.trials
    if block.split == "matched":
        return matched_points(preset, block.phase)[block.first : end]
    return unmatched_points(preset, task, block.phase, end)[block.first :]


def _blocks(preset: Preset, number: int, split: TrialSplit, phase: int, count: int) -> Iterator[Block]:
    for first in range(0, count, preset.block_size):
        yield Block(number, split, phase, first, min(preset.block_size, count - first))


def expected_trials(preset: Preset) -> int:
    """How many trials a collection has if none diverges."""
    ordinary = [task for task in preset.tasks if not task.training_only]
    only = sum(task.training_only for task in preset.tasks)
    return only + len(ordinary) * preset.phases * max(preset.matched, preset.good)
