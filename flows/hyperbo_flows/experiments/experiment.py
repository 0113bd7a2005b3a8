"""An experiment: which methods are compared, on what data, by which protocol, and where the runs are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hyperbo.data.folds import Fold
from hyperbo.data.subsets import at_most_points, fewer_tasks, only_tasks, without_flat
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.methods import Method, PretrainedMethod
from hyperbo_flows.experiments.methods import method_identity
from hyperbo_flows.experiments.protocols import PROTOCOL_NAMES, ProtocolName
from pd1_builder.version.catalog import data_folder


@dataclass(frozen=True)
class Arm:
    """A configured method, and what of the training data it gets to see.

    Attributes:
      method: a frozen dataclass of settings that satisfies `hyperbo.methods.Method`.
      points_per_task: most points per training task, as in the paper's variants named `-100`; None: all.
      training_tasks: most training tasks; those that share a test task's dataset go first. None: all.
      without_related: leave out training tasks that share a test task's dataset.
      without_flat: leave flat training functions out (`hyperbo.data.subsets`).
      trained_on: another version that its priors are pre-trained on, `<name>/<config>:<version>`, as that of
        a prior in service; None: the version that is tested on.
      study: in a study, `series` and `at`: the curve that the arm is a point of, and where on it.
    """

    method: Method
    points_per_task: int | None = None
    training_tasks: int | None = None
    without_related: bool = False
    without_flat: bool = False
    trained_on: str | None = None
    study: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method):
            raise InvalidInputError(f"{self.method!r} is no method", fix="write fit and policy")
        if self.trained_on is not None and not isinstance(self.method, PretrainedMethod):
            raise InvalidInputError(f"trained_on = {self.trained_on!r}: {self.method!r} has no priors")
        for name in ("points_per_task", "training_tasks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(
                    f"{name} = {value} is not positive", fix="give a positive number or none"
                )

    def training(self, fold: Fold, seed: int) -> TuningData:
        """What the method may learn from in a fold. The seed draws the tasks and points that are kept.

        Raises:
          InvalidInputError: no training task is left.
        """
        data = fold.training
        if self.without_related:
            data = only_tasks(data, {task.name for task in data.tasks} - set(fold.related))
        if self.without_flat:
            data = without_flat(data)
        if self.training_tasks is not None:
            data = fewer_tasks(data, self.training_tasks, seed, fold.related)
        if self.points_per_task is not None:
            data = at_most_points(data, self.points_per_task, seed)
        return data

    def description(self) -> dict[str, Any]:
        """The arm as plain values, for the metadata of an evaluation."""
        limits = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "method"}
        return method_identity(self.method) | {name: value for name, value in limits.items() if value}


@dataclass(frozen=True)
class Experiment:
    """What is compared on which data, and where the runs are kept.

    Attributes:
      arms: by the label that names them in records; the report is about the first.
      runs: folder of finished runs.
      data: the data folder; None for `pd1_builder.version.catalog.default_data_dir`.
      dataset: `<name>/<config>:<version>`.
      raw: folder of raw files the version is built from; None for those shipped or downloaded.
      preparation: named reading of the version; None for the dataset's own.
      protocol: which tasks are held out, and what a run may observe.
      not_tested: tasks that are trained on but not tested.
      seeds: seeds of what is learned, and of the runs of Bayesian optimization.
      iterations: observations per run of Bayesian optimization; the paper has 100.
      repeats: whether a run may observe a trial again before it has observed all, as in the paper's PD1
        experiments.
      train: names or patterns (`*`, `?`) of the tasks that are trained on. With `test`, in place of the
        protocol's rule; a test task is never tested by what was learned from it. Empty: all tasks.
      test: names or patterns of the tasks that are tested. Both empty: as the protocol says.
    """

    arms: Mapping[str, Arm]
    runs: Path = Path("runs")
    data: Path | None = None
    dataset: str = "pd1/mini:1.0.0"
    raw: Path | None = None
    preparation: str | None = None
    protocol: ProtocolName = "held-out-related"
    not_tested: tuple[str, ...] = field(default=())
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    iterations: int = 100
    repeats: bool = False
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if ":" not in self.dataset:
            raise InvalidInputError(
                f"dataset {self.dataset!r} names no version", fix="write <name>/<config>:<version>"
            )
        if not self.arms:
            raise InvalidInputError(
                "there is no method to compare",
                where="arms",
                fix='name one by --method; in a file, write a table [arms."<label>"] with method = "..."',
            )
        if "" in self.arms:
            raise InvalidInputError("an arm has no label", where="arms", fix='write [arms."<label>"]')
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            told = ", ".join(map(str, self.seeds)) or "none"
            raise InvalidInputError(
                f"seeds: {told}", where="experiment", fix="give at least one, and none twice"
            )
        if min(self.seeds) < 0 or self.iterations < 1:
            raise InvalidInputError(
                f"seeds {self.seeds}, iterations {self.iterations}",
                where="experiment",
                fix="use seeds of at least 0 and at least one iteration",
            )
        if (self.train or self.test) and self.not_tested:
            raise InvalidInputError(
                "train and test stand beside not_tested",
                where="experiment",
                fix="name the tasks that are tested by test alone",
            )
        if self.protocol not in PROTOCOL_NAMES:
            raise InvalidInputError(
                f"unknown protocol {self.protocol!r}",
                where="experiment",
                fix=f"use {', '.join(PROTOCOL_NAMES)}",
            )

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return data_folder(self.data)
