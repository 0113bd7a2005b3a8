"""An experiment: which methods are compared, on what, by which protocol, and where its outcome goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.methods import method_identity
from flows.protocols import PROTOCOL_NAMES, ProtocolName, TestBed, lay_out, with_training_data
from hyperbo.errors import InvalidInputError
from hyperbo.flat_tasks import without_flat
from hyperbo.folds import Fold
from hyperbo.methods import Method, PretrainedMethod
from hyperbo.subsets import at_most_points, fewer_tasks, only_tasks
from hyperbo.tuning_data import TuningData
from pd1_builder import load


@dataclass(frozen=True)
class Arm:
    """A configured method, and what of the training data it gets to see.

    Attributes:
      method: a frozen dataclass of settings that satisfies `hyperbo.methods.Method`.
      points_per_task: most points per training task, as in the paper's variants named `-100`; None: all.
      training_tasks: most training tasks; those that share a test task's dataset go first. None: all.
      without_related: leave out training tasks that share a test task's dataset.
      without_flat: leave flat training functions out (`hyperbo.flat_tasks`).
      trained_on: another version of the dataset that its priors are pre-trained on,
        `<name>/<config>:<version>`, as those of a prior that is in service; None: the version that is
        tested on.
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
                raise InvalidInputError(f"{name} = {value} is not positive", fix="or leave it out")

    def training(self, fold: Fold, seed: int) -> TuningData:
        """What the method may learn from in a fold: the seed draws the tasks and points that are kept.

        Raises:
          InvalidInputError: no task is left.
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
        described = method_identity(self.method)
        limits = {
            "points_per_task": self.points_per_task,
            "training_tasks": self.training_tasks,
            "without_related": self.without_related or None,
            "without_flat": self.without_flat or None,
            "trained_on": self.trained_on,
            "study": None if self.study is None else dict(self.study),
        }
        return described | {name: value for name, value in limits.items() if value is not None}


@dataclass(frozen=True)
class Experiment:
    """What is compared on which data, and where the outcome goes.

    Attributes:
      arms: by the label that names them in records; the report is about the first.
      runs: folder of finished runs.
      data: folder of dataset versions; None for `data` in the folder of runs.
      dataset: `<name>/<config>:<version>`.
      raw: folder of raw files the version is built from; None for those shipped or downloaded.
      preparation: named reading of the version; None for the dataset's own.
      protocol: which tasks are held out, and what a run may observe.
      not_tested: tasks that are trained on but not tested.
      seeds: of what is learned and of the runs of Bayesian optimization.
      iterations: observations per run of Bayesian optimization; the paper has 100.
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

    def __post_init__(self) -> None:
        if ":" not in self.dataset:
            raise InvalidInputError(
                f"dataset {self.dataset!r} names no version", fix="write <name>/<config>:<version>"
            )
        if not self.arms or any(not label for label in self.arms):
            raise InvalidInputError(
                "no arm, or one without a label", where="experiment", fix="name at least one method"
            )
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
        if self.protocol not in PROTOCOL_NAMES:
            raise InvalidInputError(
                f"unknown protocol {self.protocol!r}",
                where="experiment",
                fix=f"use {', '.join(PROTOCOL_NAMES)}",
            )

    @property
    def data_dir(self) -> Path:
        """Folder of dataset versions."""
        return self.data or self.runs / "data"

    def test_bed(self) -> TestBed:
        """The data under the protocol.

        Raises:
          InvalidInputError: a test task has too few trials for the iterations.
          HyperBOError: as `flows.protocols.lay_out`.
        """
        bed = lay_out(self.dataset, self.preparation, self.protocol, self.not_tested, self.data_dir)
        self._require_enough_trials(bed)
        return bed

    def training_bed(self, arm: Arm, bed: TestBed) -> TestBed:
        """The test bed with what an arm's priors are pre-trained on in its folds.

        Raises:
          HyperBOError: as `pd1_builder.load`.
        """
        if arm.trained_on in (None, self.dataset):
            return bed
        return with_training_data(bed, load(arm.trained_on, self.preparation, data_dir=self.data_dir))

    def _require_enough_trials(self, bed: TestBed) -> None:
        """Refuse what could only fail in the runs, after hours of pre-training."""
        if bed.repeats:
            return
        given = {
            task.name: max(len(set(rows)) for rows in bed.beginnings.get(task.name, ((),)))
            for task in bed.tests
        }
        short = [task for task in bed.tests if len(task.y) - given[task.name] < self.iterations]
        if short:
            rows = ", ".join(
                f"{task.name} {len(task.y)} trials, {given[task.name]} of them given" for task in short
            )
            most = min(len(task.y) - given[task.name] for task in short)
            raise InvalidInputError(
                f"no trial may be observed twice, and {self.iterations} iterations are more than there are "
                f"trials: {rows}",
                where=f"test tasks of {self.dataset}",
                fix=f"ask for at most {most} iterations, or name the tasks as not tested",
            )
