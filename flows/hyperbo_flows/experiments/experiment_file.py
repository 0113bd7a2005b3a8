"""Experiments as TOML files: `[experiment]` says on what and how, `[arms."<label>"]` what is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from hyperbo.errors import InvalidInputError
from hyperbo.methods.paper import SettingsName
from hyperbo.storage.validation import field_path, read_toml, validated
from hyperbo_flows.experiments.arms import configured
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.protocols import ProtocolName, default_protocol

ArmTables = dict[str, dict[str, Any]]


def _seeds(given: Any) -> Any:
    """The seeds 0, 1, 2, ... for a number of seeds."""
    if type(given) is int:
        return tuple(range(given))
    if not isinstance(given, list | tuple):
        raise InvalidInputError(f"{given!r}", fix="give a number of seeds, or a list such as [0, 1, 2]")
    return tuple(given)


@dataclass(frozen=True)
class Design:
    """How methods are compared, on whatever dataset; the fields are those of `Experiment`.

    In a file `seeds` may be a number of seeds, too. `settings` are those from which the arms begin: the
    project's defaults, or the paper's.
    """

    preparation: str | None = None
    protocol: ProtocolName | None = None
    not_tested: tuple[str, ...] = ()
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)] = (0, 1, 2, 3, 4)
    iterations: int = 100
    repeats: bool = False
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    settings: SettingsName = "default"


@dataclass(frozen=True, kw_only=True)
class _ExperimentTable(Design):
    dataset: str
    raw: Path | None = None


@dataclass(frozen=True)
class _ExperimentFile:
    experiment: _ExperimentTable
    arms: ArmTables


@dataclass(frozen=True)
class _ArmTable:
    """The keys of an arm's table that are no settings of its method."""

    method: str
    points_per_task: int | None = None
    training_tasks: int | None = None
    without_related: bool = False
    without_flat: bool = False
    settings: SettingsName | None = None


def read_experiment(path: Path, runs: Path, data: Path | None = None) -> Experiment:
    """Read an experiment.

    An arm's table names its `method` and the part of the training data that it sees (`points_per_task`,
    `training_tasks`, `without_related`, `without_flat`). Its other keys are settings of the method, with
    tables for nested ones. They differ from the defaults, or, where the arm or the experiment says
    `settings = "paper"`, from the paper's. The module of a method of your own may be beside the file.

    Args:
      path: the file.
      runs: folder of finished runs.
      data: the data folder; None for `pd1_builder.version.catalog.default_data_dir`.

    Raises:
      InvalidInputError: the file cannot be read, or a field is missing, unknown or wrong; the message names
        the file and the field.
      NotAvailableError: a method of one's own cannot be imported.
    """
    content = read_toml(_ExperimentFile, path)
    table = content.experiment
    return experiment_of(table, table.dataset, content.arms, path, runs=runs, data=data, raw=table.raw)


def experiment_of(
    design: Design,
    dataset: str,
    arms: ArmTables,
    path: Path,
    *,
    runs: Path,
    data: Path | None = None,
    raw: Path | None = None,
) -> Experiment:
    """Make an experiment of tables that were read from a file.

    Args:
      design: how methods are compared.
      dataset: `<name>/<config>:<version>`.
      arms: the tables of the arms, by label.
      path: the file.
      runs: folder of finished runs.
      data: the data folder; None for `pd1_builder.version.catalog.default_data_dir`.
      raw: folder of raw files that the version is built from; None for those shipped or downloaded.

    Raises:
      InvalidInputError: an arm or the experiment is not possible; the message names the file and the table.
      NotAvailableError: a method of one's own cannot be imported.
    """
    names = {each.name for each in fields(Design)} - {"settings"}
    terms: dict[str, Any] = {name: getattr(design, name) for name in names}
    if design.protocol and (design.train or design.test):
        raise InvalidInputError(
            "protocol stands beside train or test, which replace it", where=str(path), fix="leave one out"
        )
    terms["protocol"] = design.protocol or default_protocol(dataset)
    made = {label: _arm(table, dataset, path, label, design.settings) for label, table in arms.items()}
    try:
        return Experiment(made, runs, data, dataset, raw, **terms)
    except InvalidInputError as error:
        raise InvalidInputError(str(error), where=str(path)) from error


def _arm(table: Mapping[str, Any], dataset: str, path: Path, label: str, settings_name: SettingsName) -> Arm:
    own_keys = {field.name for field in fields(_ArmTable)}
    at = ("arms", label)
    arm = validated(_ArmTable, {key: table[key] for key in table if key in own_keys}, str(path), at=at)
    limits = {key: value for key, value in asdict(arm).items() if key not in ("method", "settings")}
    settings = {key: table[key] for key in table if key not in own_keys}
    where = f"{path}: {field_path(*at)}"
    try:
        default = configured(arm.method, dataset, folder=path.parent, settings=arm.settings or settings_name)
        return Arm(validated(type(default), settings, str(path), at=at, default=default), **limits)
    except InvalidInputError as error:
        if error.where.startswith(where):
            raise
        raise InvalidInputError(str(error), where=where) from error
