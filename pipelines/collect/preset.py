"""Presets: which tasks are collected and with how many trials, read from TOML files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from pipelines.collect.datasets import TASK_DATASETS
from pipelines.collect.models import MODELS


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

    shortname: str
    dataset: str
    model: str
    batch_size: int
    steps: int
    l2: float = 0.0
    training_only: int = 0

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
      tasks: the tasks.
    """

    name: str
    version: str
    seed: int
    phases: int
    matched: int
    good: int
    block_size: int
    evaluations: int
    tasks: tuple[TaskPreset, ...]

    @property
    def sha256(self) -> str:
        """Identity of the preset: a hash over all its settings."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()


def load_preset(preset: str | Path) -> Preset:
    """Read a preset: by name (`mini`, `tiny`), or from a TOML file.

    >>> load_preset("mini").tasks[0].study
    'digits_simple_cnn_20'

    Raises:
      InvalidInputError: there is none, or a field is missing, unknown or wrong; names file and field.
    """
    where, text = _read(preset)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"this is not TOML: {error}", where=where) from error
    tables = document.pop("task", [])
    if not isinstance(tables, list) or not tables:
        raise InvalidInputError("there is no task", where=where, fix="write one [[task]] table for each")
    tasks = []
    for number, table in enumerate(tables, start=1):
        place = f"{where}: task {number}"
        task = TaskPreset(**_fields(TaskPreset, table, place))
        _check_task(task, place)
        tasks.append(task)
    result = Preset(**_fields(Preset, document, where, given={"tasks": tuple(tasks)}))
    _check(result, where)
    return result


def _read(preset: str | Path) -> tuple[str, str]:
    if isinstance(preset, str) and not preset.endswith(".toml"):
        folder = resources.files("pipelines.collect").joinpath("presets")
        file = folder.joinpath(f"{preset}.toml")
        if not file.is_file():
            known = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
            raise InvalidInputError(
                f"no preset {preset!r}", fix=f"use one of {', '.join(known)}, or the path of a .toml file"
            )
        return file.name, file.read_text(encoding="utf-8")
    try:
        return str(preset), Path(preset).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the preset cannot be read: {error}", where=str(preset)) from error


def _fields(
    kind: type, table: dict[str, Any], where: str, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The values of a dataclass from a TOML table; every field there, none unknown, each of its type."""
    values = dict(given or {})
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in values}
    for name in table:
        if name not in fields:
            raise InvalidInputError(f"unknown field {name!r}", where=where, fix=f"use {', '.join(fields)}")
    for name, field in fields.items():
        if name not in table:
            if field.default is dataclasses.MISSING:
                raise InvalidInputError(f"field {name!r} is missing", where=where)
            continue
        value, expected = table[name], {"str": str, "int": int, "float": float}[str(field.type)]
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            raise InvalidInputError(
                f"{name} = {value!r} is not of type {expected.__name__}", where=f"{where}: {name}"
            )
        values[name] = value
    return values


def _check_task(task: TaskPreset, where: str) -> None:
    if task.dataset not in TASK_DATASETS:
        raise InvalidInputError(
            f"unknown task dataset {task.dataset!r}",
            where=f"{where}: dataset",
            fix=f"use one of {', '.join(TASK_DATASETS)}",
        )
    if task.model not in MODELS:
        raise InvalidInputError(
            f"unknown model {task.model!r}", where=f"{where}: model", fix=f"use one of {', '.join(MODELS)}"
        )
    if not task.shortname.isidentifier():
        raise InvalidInputError(
            f"shortname {task.shortname!r} would not do in a study group or a file name",
            where=f"{where}: shortname",
            fix="use letters, digits and underscores",
        )
    for name in ("l2", "training_only"):
        if getattr(task, name) < 0:
            raise InvalidInputError(f"{name} = {getattr(task, name)} is negative", where=f"{where}: {name}")
    _check_positive(task, ("batch_size", "steps"), where)


def _check(preset: Preset, where: str) -> None:
    _check_positive(preset, ("phases", "matched", "good", "block_size", "evaluations"), where)
    if preset.phases > 2:
        raise InvalidInputError(f"phases = {preset.phases}", where=f"{where}: phases", fix="use 1 or 2")
    if preset.seed < 0:
        raise InvalidInputError(f"seed = {preset.seed} is negative", where=f"{where}: seed")
    studies = [task.study for task in preset.tasks]
    for number, (study, task) in enumerate(zip(studies, preset.tasks, strict=True), start=1):
        if studies.index(study) != number - 1:
            raise InvalidInputError(
                f"shortname and batch size {study!r} occur twice", where=f"{where}: task {number}"
            )
        if task.training_only > preset.matched:
            raise InvalidInputError(
                f"training_only = {task.training_only} is more than matched = {preset.matched}",
                where=f"{where}: task {number}: training_only",
            )
        if task.steps % preset.evaluations:
            raise InvalidInputError(
                f"steps = {task.steps} is no multiple of evaluations = {preset.evaluations}",
                where=f"{where}: task {number}: steps",
            )


def _check_positive(settings: TaskPreset | Preset, names: tuple[str, ...], where: str) -> None:
    for name in names:
        if getattr(settings, name) < 1:
            raise InvalidInputError(
                f"{name} = {getattr(settings, name)} is not positive", where=f"{where}: {name}"
            )
