"""The studies of the paper as experiments: which arms they compare, fitted to what a dataset holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flows.experiment import Arm, Experiment
from flows.methods import method_name
from flows.protocols import ProtocolName, TestBed
from hyperbo.acquisition import OFFLINE_UCB_COEFFICIENT
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import HEKL, STBO, STBOH, Decision, HSum, Rand

# For PD1 the paper names the ends of its grids, 4 and about 1600 points, 3 and 23 tasks, and some values
# between; for HPO-B all.
POINTS_PER_TASK = (4, 10, 25, 50, 100, 200, 400, 800, 1600)
HPOB_POINTS_PER_TASK = (10, 100, 1000)
TRAINING_TASKS = (3, 6, 9, 12, 15, 18, 23)
ACQUISITIONS = {
    "PI": Decision("probability_of_improvement"),
    "EI": Decision("expected_improvement"),
    "UCB": Decision("upper_confidence_bound", OFFLINE_UCB_COEFFICIENT),
}
MEANS = {"zero": "Zero", "constant": "Constant", "linear": "Linear MLP"}
FEATURES = ((4,), (8,), (32, 32))
HPOB_FEATURES = (*FEATURES, (128, 128))
# The number of points in the paper's study of negative transfer.
FEW_POINTS = 100

# Methods that learn nothing from training tasks, and those that learn from matched inputs only.
_SINGLE_TASK = (STBO, STBOH, Rand)
_MATCHED = (HEKL, HSum)


@dataclass(frozen=True)
class Study:
    """A study of the paper.

    Attributes:
      question: what it asks.
      section: label of the section it is from.
      methods: compared unless others are asked for; those that need matched inputs where there are any.
      arms: makes the arms of a method, from the arm itself and the data under the study's protocol.
      protocol: what the study holds out; None: what the experiment does.
    """

    question: str
    section: str
    methods: tuple[str, ...]
    arms: Callable[[str, Arm, TestBed], dict[str, Arm]]
    protocol: ProtocolName | None = None


def design(study: Study, base: Experiment, bed: TestBed) -> Experiment:
    """The experiment of a study.

    Args:
      study: which.
      base: its arms are the methods as they are to be varied.
      bed: the data of `base`, under its protocol.

    Returns:
      The experiment with the arms of the study. A method that learns nothing from training tasks is a
      reference: one arm that does not vary.

    Raises:
      InvalidInputError: a method has not what the study varies, or the data leave nothing to vary.
    """
    arms: dict[str, Arm] = {}
    for label, arm in base.arms.items():
        arms |= study.arms(label, arm, bed)
    return replace(base, arms=arms)


def under_its_protocol(study: Study, experiment: Experiment) -> Experiment:
    """The experiment under the protocol of a study; HPO-B keeps its own, which prescribes the split."""
    if study.protocol is None or experiment.protocol == "hpob":
        return experiment
    return replace(experiment, protocol=study.protocol)


def usable(arms: Mapping[str, Arm], bed: TestBed) -> Mapping[str, Arm]:
    """The arms that the data have enough for: without matched inputs, none that learns from them alone."""
    if all(fold.training.complete_blocks for fold in bed.folds.values()):
        return arms
    return {label: arm for label, arm in arms.items() if not isinstance(arm.method, _MATCHED)}


def _is_hpob(bed: TestBed) -> bool:
    return bed.data.provenance.dataset.startswith("hpob/")


def _reference(label: str, arm: Arm, quantity: str) -> dict[str, Arm]:
    return {label: replace(arm, study={"quantity": quantity, "series": label, "at": None})}


def _points_per_task(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "points per training task"
    if isinstance(arm.method, _SINGLE_TASK):
        return _reference(label, arm, quantity)
    most = max(len(task.y) for fold in bed.folds.values() for task in fold.training.tasks)
    if isinstance(arm.method, _MATCHED):
        most = min(
            sum(len(block.x) for block in fold.training.complete_blocks) for fold in bed.folds.values()
        )
    grid = HPOB_POINTS_PER_TASK if _is_hpob(bed) else POINTS_PER_TASK
    counts = [*(count for count in grid if count < most), most]
    return {
        f"{label}, {count} points": replace(
            arm, points_per_task=count, study={"quantity": quantity, "series": label, "at": count}
        )
        for count in counts
    }


def _training_tasks(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "training tasks"
    if isinstance(arm.method, _SINGLE_TASK):
        return _reference(label, arm, quantity)
    most = min(len(fold.training.tasks) for fold in bed.folds.values())
    counts = [*(count for count in TRAINING_TASKS if count < most), most]
    return {
        f"{label}, {count} tasks": replace(
            arm, training_tasks=count, study={"quantity": quantity, "series": label, "at": count}
        )
        for count in counts
    }


def _acquisition(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "acquisition function"
    method: Any = arm.method
    if isinstance(method, Rand):
        return _reference(label, arm, quantity)
    if not isinstance(getattr(method, "decision", None), Decision):
        raise InvalidInputError(
            f"{method_name(method)} has no acquisition function to vary", fix="leave the method out"
        )
    return {
        f"{label} {name}": replace(
            arm,
            method=replace(method, decision=decision),
            study={"quantity": quantity, "series": label, "at": name},
        )
        for name, decision in ACQUISITIONS.items()
    }


def _structure(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "features"
    method: Any = arm.method
    if not isinstance(getattr(method, "architecture", None), Architecture):
        return _reference(label, arm, quantity)
    return {
        f"{label} {words} {_sizes(hidden)}": replace(
            arm,
            method=replace(method, architecture=replace(method.architecture, mean=mean, hidden=hidden)),
            study={"quantity": quantity, "series": f"{label} {words}", "at": _sizes(hidden)},
        )
        for mean, words in MEANS.items()
        for hidden in (HPOB_FEATURES if _is_hpob(bed) else FEATURES)
    }


def _sizes(hidden: tuple[int, ...]) -> str:
    return str(hidden).replace(" ", "")


def _negative_transfer(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "training functions"
    if isinstance(arm.method, _SINGLE_TASK):
        return _reference(label, arm, quantity)
    if not bed.flat_training_tasks:
        raise InvalidInputError(
            "no training function is flat: there is nothing to leave out",
            where=bed.data.provenance.dataset,
            fix="take data with flat functions, such as hpob/5636 or hpob/5859",
        )
    few = replace(arm, points_per_task=arm.points_per_task or FEW_POINTS)
    return {
        f"{label}, {at}": replace(
            few, without_flat=without, study={"quantity": quantity, "series": label, "at": at}
        )
        for at, without in (("all", False), ("without flat", True))
    }


def _held_out(label: str, arm: Arm, bed: TestBed) -> dict[str, Arm]:
    quantity = "training tasks"
    if isinstance(arm.method, _SINGLE_TASK):
        return _reference(label, arm, quantity)
    if not any(fold.related for fold in bed.folds.values()):
        raise InvalidInputError(
            "no training task shares the dataset of a test task: there is nothing to hold out",
            where=bed.data.provenance.dataset,
        )
    return {
        f"{label}, {at}": replace(
            arm, without_related=without, study={"quantity": quantity, "series": label, "at": at}
        )
        for at, without in (("related held out", True), ("all but the test task", False))
    }


_HYPERBO = ("H-NLL", "H-EKL", "FSBO", "ABLR")
STUDIES = {
    "points-per-task": Study(
        "How does the number of points in each training task matter?",
        "sssec:exp-pd1-datapoints",
        (*_HYPERBO, "STBOH"),
        _points_per_task,
        "all-but-test-task",
    ),
    "training-tasks": Study(
        "How does the number of training tasks matter?",
        "ssec:num_training_tasks",
        (*_HYPERBO, "STBOH"),
        _training_tasks,
        "all-but-test-task",
    ),
    "acquisition": Study(
        "How does the acquisition function matter?", "app:exp-acfun", _HYPERBO, _acquisition
    ),
    "structure": Study(
        "How do mean and features matter?", "app:exp-structure", ("H-NLL", "H-EKL"), _structure
    ),
    "negative-transfer": Study(
        "Do flat training functions do harm?",
        "sssec:negative_transfer",
        ("H-NLL", "FSBO", "ABLR", "Rand"),
        _negative_transfer,
    ),
    "held-out": Study(
        "How much do training tasks on the test task's own dataset help?",
        "sssec:hold-out-related",
        (*_HYPERBO, "STBOH"),
        _held_out,
        "all-but-test-task",
    ),
}
