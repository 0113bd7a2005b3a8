"""Blocks of trials of one task: trained once, kept as small files, found again by what made them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float64

from hyperbo.errors import InvalidInputError
from hyperbo.files import write_atomically
from pipelines.collect.models import MODELS
from pipelines.collect.points import task_seed
from pipelines.collect.preset import Preset, TaskPreset
from pipelines.collect.records import to_json_lines, trial_rows
from pipelines.collect.tasks import TaskDataset, load_task_dataset
from pipelines.collect.trainer import Curves, TrainingSettings, make_trainer

TrialSplit = Literal["matched", "unmatched"]
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn")
# What trials are made by: blocks that other code made are not taken over.
MODULES = ("tasks.py", "models.py", "trainer.py", "points.py", "records.py", "blocks.py")


class TaskBlocks:
    """The trials of one task, in blocks of the preset's size.

    Args:
      preset: the collection.
      task: the task.
      work_folder: where finished blocks are kept.

    Attributes:
      dataset: the task dataset.
      trained: number of trials trained here, not found finished.

    Raises:
      InvalidInputError: model or batch size do not fit the task dataset.
    """

    def __init__(self, preset: Preset, task: TaskPreset, work_folder: Path) -> None:
        self.preset, self.task = preset, task
        self.dataset = load_task_dataset(task.dataset)
        self.trained = 0
        _check_fit(preset, task, self.dataset)
        self._folder = work_folder / f"{task.study}-{_fingerprint(preset, task, self.dataset)}"

    def rows(
        self, split: TrialSplit, first: int, hyperparameters: Float64[np.ndarray, "p 4"]
    ) -> list[dict[str, Any]]:
        """The rows of one block, from its file or by training it.

        Args:
          split: which of the two sets the trials belong to.
          first: number of the block's first trial within its split.
          hyperparameters: raw values, at most a block of them; the last block of a split may be short.
        """
        # Blocks are kept by the points they were trained at: other points are another block.
        points = hashlib.sha256(np.ascontiguousarray(hyperparameters, "<f8").tobytes()).hexdigest()[:8]
        file = self._folder / f"{split}-{first:05d}-{points}.jsonl"
        if file.is_file():
            rows = _read_rows(file)
            if len(rows) == len(hyperparameters):
                return rows
        size, count = self.preset.block_size, len(hyperparameters)
        # One compiled program serves all blocks: a short one is filled up, and the filling thrown away.
        filling = np.repeat(hyperparameters[:1], size - count, axis=0)
        curves = self._train(np.concatenate([hyperparameters, filling]))
        self.trained += count
        rows = trial_rows(self.preset, self.task, self.dataset, split, first, hyperparameters, curves)
        write_atomically(file, to_json_lines(rows))
        return rows

    @cached_property
    def _train(self) -> Callable[[Float64[np.ndarray, "p 4"]], Curves]:
        settings = TrainingSettings(
            self.task.batch_size,
            self.task.steps,
            self.preset.evaluations,
            self.task.l2,
            task_seed(self.preset, self.task),
        )
        return make_trainer(MODELS[self.task.model], self.dataset, settings)


def _read_rows(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise InvalidInputError(
            f"a finished block cannot be read: {error}",
            where=str(file),
            fix="delete it to have it trained anew",
        ) from error


def _check_fit(preset: Preset, task: TaskPreset, dataset: TaskDataset) -> None:
    where = f"preset {preset.name!r}: task {task.study}"
    kind = MODELS[task.model].kind
    if kind != dataset.kind:
        raise InvalidInputError(
            f"model {task.model!r} takes {kind} inputs, and {dataset.name!r} has {dataset.kind} inputs",
            where=f"{where}: model",
        )
    if task.batch_size > len(dataset.train):
        raise InvalidInputError(
            f"batch_size = {task.batch_size} is more than the {len(dataset.train)} training examples",
            where=f"{where}: batch_size",
        )


def _fingerprint(preset: Preset, task: TaskPreset, dataset: TaskDataset) -> str:
    """Identify all that a task's blocks are made from: settings, data, library versions, our code."""
    package = resources.files("pipelines.collect")
    sources = [hashlib.sha256(package.joinpath(name).read_bytes()).hexdigest() for name in MODULES]
    made_from = {
        "collection": [preset.name, preset.version, preset.seed, preset.block_size, preset.evaluations],
        # The number of matched points is no part: more of them go on with the same sequence.
        "task": dataclasses.asdict(task),
        "dataset": dataset.sha256,
        "libraries": library_versions(),
        "backend": jax.default_backend(),
        "sources": sources,
    }
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Versions of the libraries that results depend on."""
    return {name: metadata.version(name) for name in LIBRARIES}
