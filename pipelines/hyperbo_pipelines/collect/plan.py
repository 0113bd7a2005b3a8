"""What a collection trains: hyperparameter points, blocks of trials, a task's data and its trainer."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.stats import qmc

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.collect.datasets import TaskDataset, load_task_dataset
from hyperbo_pipelines.collect.models import MODELS
from hyperbo_pipelines.collect.preset import Preset, TaskPreset
from hyperbo_pipelines.collect.trainer import Trainer, TrainingSettings

TrialSplit = Literal["matched", "unmatched"]
SPLITS: tuple[TrialSplit, ...] = ("matched", "unmatched")
# A task is refused if more than 4 of 5 trials diverge: it tells little and needs too many trials.
MOST_TRIALS_PER_GOOD_ONE = 5


class TrialBlock(NamedTuple):
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

    @property
    def places(self) -> list[str]:
        """The end of each trial's `trial_dir`."""
        numbers = range(self.first, self.first + self.trials)
        return [f"{self.split}/phase{self.phase}/{number:05d}" for number in numbers]


def matched_blocks(preset: Preset, number: int, phase: int) -> Iterator[TrialBlock]:
    """The blocks of a task's matched trials.

    A task that is for training only has its first matched points of phase 0, and no others.
    """
    only = preset.tasks[number].training_only
    count = preset.matched if not only else only if phase == 0 else 0
    return _blocks(preset, number, "matched", phase, count)


def unmatched_blocks(preset: Preset, number: int, phase: int, good: int) -> Iterator[TrialBlock]:
    """The blocks of a task's unmatched trials, enough for about `preset.good` trials without divergence.

    The number follows from the share of matched trials that diverged, so that all blocks are known before
    the first of them is trained. `good` matched trials of this phase did not diverge.

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


def block_points(preset: Preset, block: TrialBlock) -> Float64[np.ndarray, "p 4"]:
    """The raw hyperparameters of a block's trials."""
    task = preset.tasks[block.task]
    end = block.first + block.trials
    if block.split == "matched":
        return matched_points(preset, block.phase)[block.first : end]
    return unmatched_points(preset, task, block.phase, end)[block.first :]


def _blocks(preset: Preset, number: int, split: TrialSplit, phase: int, count: int) -> Iterator[TrialBlock]:
    for first in range(0, count, preset.block_size):
        yield TrialBlock(number, split, phase, first, min(preset.block_size, count - first))


def expected_trials(preset: Preset) -> int:
    """How many trials a collection has if none diverges."""
    ordinary = [task for task in preset.tasks if not task.training_only]
    only = sum(task.training_only for task in preset.tasks)
    return only + len(ordinary) * preset.phases * max(preset.matched, preset.good)


def matched_points(preset: Preset, phase: int) -> Float64[np.ndarray, "m 4"]:
    """The points of a phase that all tasks share: raw values of a scrambled Halton sequence."""
    return _halton(np.random.default_rng([preset.seed, 0, phase]), preset.matched)


def unmatched_points(preset: Preset, task: TaskPreset, phase: int, count: int) -> Float64[np.ndarray, "n 4"]:
    """The first points of a task's own scrambled Halton sequence for a phase: raw hyperparameters."""
    return _halton(np.random.default_rng([preset.seed, 1, phase, task_seed(preset, task)]), count)


def task_seed(preset: Preset, task: TaskPreset) -> int:
    """A seed that depends on the preset's seed and the task alone, not on the other tasks."""
    digest = hashlib.sha256(f"{preset.seed}/{task.study}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def _halton(generator: np.random.Generator, count: int) -> Float64[np.ndarray, "n 4"]:
    sequence = qmc.Halton(PD1_SEARCH_SPACE.dimension, scramble=True, rng=generator)
    return PD1_SEARCH_SPACE.from_unit(sequence.random(count))


def dataset_of(preset: Preset, task: TaskPreset) -> TaskDataset:
    """Load a task's dataset.

    Raises:
      InvalidInputError: the model or the batch size does not fit the dataset.
      NotAvailableError: the library with the dataset is not installed.
    """
    dataset = load_task_dataset(task.dataset)
    where = f"preset {preset.name!r}: task {task.study}"
    kind = MODELS[task.model].kind
    if kind != dataset.kind:
        raise InvalidInputError(
            f"model {task.model!r} takes {kind} inputs, and {task.dataset!r} has {dataset.kind} inputs",
            where=f"{where}: model",
        )
    if task.batch_size > len(dataset.train):
        raise InvalidInputError(
            f"batch_size = {task.batch_size} is more than the {len(dataset.train)} training examples",
            where=f"{where}: batch_size",
        )
    return dataset


def trainer_of(preset: Preset, task: TaskPreset, dataset: TaskDataset, block_size: int) -> Trainer:
    """The trainer of the task's trials, `block_size` of them at once."""
    settings = TrainingSettings(
        task.batch_size, task.steps, preset.evaluations, task.l2, task_seed(preset, task)
    )
    return Trainer(MODELS[task.model], dataset, settings, block_size)
