"""Presets: which tasks are collected and with how many trials, read from TOML files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import field_path, one_of, read_toml, suggestion
from hyperbo_pipelines.collect.datasets import TASK_DATASETS
from hyperbo_pipelines.collect.models import MODELS


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise InvalidInputError(
            f"{name!r} cannot be part of a file name", fix="use letters, digits and underscores"
        )
    return name


@dataclass(frozen=True)
class TaskPreset:
    """One tuning task.

    Attributes:
      shortname: first part of the study group, `<dataset>_<model>` by custom.
      dataset: task dataset, a name of `TASK_DATASETS`.
      model: model variant, a name of `MODELS`.
      batch_size: minibatch size.
      steps: training steps of every trial.
      l2: weight of the penalty on weights in the training cost.
      training_only: if not 0, the task has only so many matched points, of phase 0: enough to train on, too
        few to test on, as PD1's ImageNet ResNet50 with batch size 1024.
    """

    shortname: Annotated[str, AfterValidator(_identifier)]
    dataset: Annotated[str, one_of(TASK_DATASETS)]
    model: Annotated[str, one_of(MODELS)]
    batch_size: PositiveInt
    steps: PositiveInt
    l2: NonNegativeFloat = 0.0
    training_only: NonNegativeInt = 0

    @property
    def study(self) -> str:
        """The task's name as a file name."""
        return f"{self.shortname}_{self.batch_size}"


@dataclass(frozen=True)
class Preset:
    """A collection of tuning trials.

    Attributes:
      name: name of the collection.
      version: its version; another one when a change of the preset changes trials.
      seed: of the hyperparameter points, the initial weights and the order of examples.
      phases: 1 or 2; each has points of its own.
      matched: number of points of a phase that are trained on every task.
      good: number of trials of a task and phase that are to end without divergence: trials at points of the
        task's own make it up.
      block_size: number of trials trained at once; results do not depend on it in substance, but may in
        the last bit.
      evaluations: number of points of every curve.
      tasks: the tasks; in the file, one table `[[task]]` for each.
    """

    name: str
    version: str
    seed: NonNegativeInt
    phases: Annotated[int, Field(ge=1, le=2)]
    matched: PositiveInt
    good: PositiveInt
    block_size: PositiveInt
    evaluations: PositiveInt
    tasks: Annotated[tuple[TaskPreset, ...], Field(alias="task", min_length=1)]

    @property
    def sha256(self) -> str:
        """Identity of the preset: a hash over all its settings."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()


def load_preset(preset: str | Path) -> Preset:
    """Read a preset: by name (`mini`, `tiny`), or from a TOML file.

    >>> load_preset("mini").tasks[0].study
    'digits_simple_cnn_20'

    Raises:
      InvalidInputError: there is no such preset, or a field is missing, unknown or wrong; the message names
        the file and the field.
    """
    file = Path(preset)
    if isinstance(preset, str) and not preset.endswith(".toml"):
        folder = resources.files("hyperbo_pipelines.collect").joinpath("presets")
        file = folder.joinpath(f"{preset}.toml")
        if not file.is_file():
            known = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
            raise InvalidInputError(
                f"no preset {preset!r}", fix=f"{suggestion(str(preset), known)}, or the path of a .toml file"
            )
    result = read_toml(Preset, file)
    _check_tasks(result, str(file))
    return result


def _check_tasks(preset: Preset, where: str) -> None:
    """Check each task against the other tasks and the whole collection."""
    studies: set[str] = set()
    for number, task in enumerate(preset.tasks):
        field, what = "", ""
        if task.study in studies:
            field, what = "shortname", f"another task has the shortname and batch size of {task.study!r}"
        elif task.training_only > preset.matched:
            field, what = "training_only", f"{task.training_only} is more than matched = {preset.matched}"
        elif task.steps % preset.evaluations:
            field, what = "steps", f"{task.steps} is no multiple of evaluations = {preset.evaluations}"
        if what:
            raise InvalidInputError(what, where=f"{where}: {field_path('task', number, field)}")
        studies.add(task.study)
