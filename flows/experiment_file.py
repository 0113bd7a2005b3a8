"""Experiments as TOML files: `[experiment]` says on what and how, `[arms."<label>"]` what is compared."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flows.arms import configured
from flows.experiment import Arm, Experiment
from flows.fill import fill
from flows.protocols import ProtocolName, default_protocol
from hyperbo.errors import InvalidInputError


@dataclass(frozen=True)
class _General:
    """The table `[experiment]`; a number of seeds stands for 0, 1, 2, ..."""

    dataset: str
    raw: str | None = None
    preparation: str | None = None
    protocol: ProtocolName | None = None
    not_tested: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    iterations: int = 100


@dataclass(frozen=True)
class _Limits:
    """What an arm's table says beside its method and the settings of that."""

    points_per_task: int | None = None
    training_tasks: int | None = None
    without_related: bool = False
    without_flat: bool = False


def read_experiment(path: Path, runs: Path, data: Path | None = None) -> Experiment:
    """Read an experiment.

    An arm's table names its `method` and what of the training data it sees (`points_per_task`,
    `training_tasks`, `without_related`, `without_flat`); its other keys are settings of the method, with
    tables for nested ones. What is not given is as the paper has it for the dataset. The module of a method
    of one's own may be beside the file.

    Args:
      path: the file.
      runs: folder of finished runs.
      data: folder of dataset versions; None for `data` in the folder of runs.

    Raises:
      InvalidInputError: the file cannot be read, or says what cannot be.
      NotAvailableError: a method of one's own cannot be imported.
    """
    content = read_tables(path, ("experiment", "arms"))
    return experiment_of(content, path, runs, data)


def read_tables(path: Path, known: Sequence[str]) -> Mapping[str, Any]:
    """Read a TOML file that has no other tables than these.

    Raises:
      InvalidInputError: it cannot be read, or has another table.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=str(path), fix="give a TOML file"
        ) from error
    for name in content:
        if name not in known:
            raise InvalidInputError(
                f"unknown table {name!r}", where=str(path), fix=f"use {' and '.join(known)}"
            )
    return content


def experiment_of(content: Mapping[str, Any], path: Path, runs: Path, data: Path | None = None) -> Experiment:
    """The experiment of the tables that were read from a file; errors as `read_experiment`."""
    given = dict(table_of(content, "experiment", str(path)))
    if type(given.get("seeds")) is int:
        given["seeds"] = list(range(given["seeds"]))
    general = fill(_General, given, f"{path}, experiment")
    arms = table_of(content, "arms", str(path))
    made = {}
    for label in arms:
        where = f'{path}, arms."{label}"'
        made[label] = _arm(table_of(arms, label, where), general.dataset, where, path.parent)
    try:
        return Experiment(
            made,
            runs,
            data,
            **asdict(general)
            | {
                "raw": None if general.raw is None else Path(general.raw),
                "protocol": general.protocol or default_protocol(general.dataset),
            },
        )
    except InvalidInputError as error:
        raise InvalidInputError(str(error), where=str(path)) from error


def table_of(content: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """A table that must be there.

    Raises:
      InvalidInputError: it is not.
    """
    table = content.get(name)
    if not isinstance(table, Mapping):
        raise InvalidInputError(f"no table {name!r}", where=where, fix=f"write [{name}]")
    return table


def _arm(table: Mapping[str, Any], dataset: str, where: str, folder: Path) -> Arm:
    settings = dict(table)
    name = settings.pop("method", None)
    if not isinstance(name, str):
        raise InvalidInputError("method is missing", where=where, fix='write method = "H-NLL", or another')
    limits = {key: settings.pop(key) for key in list(settings) if key in _Limits.__dataclass_fields__}
    limit = fill(_Limits, limits, where)
    try:
        method = configured(name, dataset, folder=folder)
        filled = fill(type(method), settings, where, default=method)
        return Arm(filled, **asdict(limit))
    except InvalidInputError as error:
        if error.where.startswith(where):
            raise
        raise InvalidInputError(str(error), where=where) from error
