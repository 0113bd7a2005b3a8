"""A task of a preset made ready: its data, and what trains it."""

from __future__ import annotations

from hyperbo.errors import InvalidInputError
from pipelines.collect.datasets import TaskDataset, load_task_dataset
from pipelines.collect.models import MODELS
from pipelines.collect.points import task_seed
from pipelines.collect.preset import Preset, TaskPreset
from pipelines.collect.trainer import Trainer, TrainingSettings


def dataset_of(preset: Preset, task: TaskPreset) -> TaskDataset:
    """Load a task's dataset.

    Raises:
      InvalidInputError: model or batch size do not fit it.
      NotAvailableError: the library that brings it is not installed.
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
    """What trains the task's trials, so many at once."""
    settings = TrainingSettings(
        task.batch_size, task.steps, preset.evaluations, task.l2, task_seed(preset, task)
    )
    return Trainer(MODELS[task.model], dataset, settings, block_size)
