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
from pipelines.collect.models import MODELS
from pipelines.collect.tasks import TASK_DATASETS


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
    """

    shortname: str
    dataset: str
    model: str
    batch_size: int
    steps: int
    l2: float = 0.0

    @property
    def study_group(self) -> str:
        """The task's name as PD1 writes it: `shortname,dataset,model,variant,batch_size`."""
        family = MODELS[self.model].family
        return f"{self.shortname},{self.dataset},{family},{self.model},{self.batch_size}"

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
      matched: number of points trained on every task.
      unmatched: number of trials per task, at points of its own, that are to end without divergence.
      block_size: number of trials trained at once; results do not depend on it in substance, but may in
        the last bit.
      evaluations: number of points of every curve.
      tasks: the tasks.
    """

    name: str
    version: str
    seed: int
    matched: int
    unmatched: int
    block_size: int
    evaluations: int
    tasks: tuple[TaskPreset, ...]

    @property
    def sha256(self) -> str:
        """Identity of the preset: a hash over all its settings."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()


def load_preset(preset: str | Path) -> Preset:
    """Read a preset: by name (`mini`, `tiny`), or from a TOML file.

    >>> load_preset("mini").tasks[0].study_group
    'digits_simple_cnn,digits,simple_cnn,simple_cnn,20'

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
    if task.l2 < 0:
        raise InvalidInputError(f"l2 = {task.l2} is negative", where=f"{where}: l2")
    _check_positive(task, ("batch_size", "steps"), where)


def _check(preset: Preset, where: str) -> None:
    _check_positive(preset, ("matched", "unmatched", "block_size", "evaluations"), where)
    if preset.seed < 0:
        raise InvalidInputError(f"seed = {preset.seed} is negative", where=f"{where}: seed")
    studies = [task.study for task in preset.tasks]
    for number, (study, task) in enumerate(zip(studies, preset.tasks, strict=True), start=1):
        if studies.index(study) != number - 1:
            raise InvalidInputError(
                f"shortname and batch size {study!r} occur twice", where=f"{where}: task {number}"
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
