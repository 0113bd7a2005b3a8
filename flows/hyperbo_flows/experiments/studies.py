"""The studies of the paper: which arms they compare, fitted to what a dataset holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hyperbo.acquisition import OFFLINE_UCB_COEFFICIENT
from hyperbo.errors import InvalidInputError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.methods import EGP, HEKL, STBO, STBOH, AcquisitionDecision, HSum, Rand
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.methods import method_name
from hyperbo_flows.experiments.protocols import ProtocolName, TestBed

# For PD1 the paper names the ends of its grids (4 and about 1600 points, 3 and 23 tasks) and some values
# between. For HPO-B it names all values.
POINTS_PER_TASK = (4, 10, 25, 50, 100, 200, 400, 800, 1600)
HPOB_POINTS_PER_TASK = (10, 100, 1000)
TRAINING_TASKS = (3, 6, 9, 12, 15, 18, 23)
ACQUISITIONS = {
    "PI": AcquisitionDecision("probability_of_improvement"),
    "EI": AcquisitionDecision("expected_improvement"),
    "UCB": AcquisitionDecision("upper_confidence_bound", OFFLINE_UCB_COEFFICIENT),
}
MEANS = {"zero": "Zero", "constant": "Constant", "linear": "Linear MLP"}
FEATURES = ((4,), (8,), (32, 32))
HPOB_FEATURES = (*FEATURES, (128, 128))
# The number of points in the paper's study of negative transfer.
FEW_POINTS = 100

# Methods that learn nothing from training tasks, and methods that learn from matched inputs only.
_SINGLE_TASK = (STBO, STBOH, Rand)
_MATCHED = (HEKL, HSum, EGP)


class Variant(NamedTuple):
    """A point of a study: an arm, the curve that it is on, and where on it; at None it is a reference."""

    arm: Arm
    series: str
    at: Any


@dataclass(frozen=True)
class Study:
    """A study of the paper.

    Attributes:
      name: its name on the command line; `hyperbo.evaluation.pages.opening.STUDIES` says what it asks.
      quantity: what it varies.
      methods: the methods that are compared unless the user names others.
      variants: makes the variants of a method from its label, its arm and the data under the study's
        protocol: none where the method is a reference.
      protocol: what the study holds out; None: what the experiment holds out.
    """

    name: str
    quantity: str
    methods: tuple[str, ...]
    variants: Callable[[str, Arm, TestBed], dict[str, Variant]]
    protocol: ProtocolName | None = None


def design(study: Study, methods: Mapping[str, Arm], bed: TestBed) -> dict[str, Arm]:
    """The arms of a study.

    A method that learns nothing from training tasks is a reference: one arm that does not vary.

    Args:
      study: the study.
      methods: the methods that it varies, by their labels.
      bed: the data, under the study's protocol.

    Raises:
      InvalidInputError: a method lacks what the study varies, or the data leave nothing to vary.
    """
    return {
        name: replace(arm, study={"name": study.name, "quantity": study.quantity, "series": series, "at": at})
        for label, method in methods.items()
        for name, (arm, series, at) in (
            study.variants(label, method, bed) or {label: Variant(method, label, None)}
        ).items()
    }


def under_its_protocol(study: Study, experiment: Experiment) -> Experiment:
    """The experiment under the protocol of a study. HPO-B keeps its own, which prescribes the split."""
    if study.protocol is None or experiment.protocol == "hpob":
        return experiment
    return replace(experiment, protocol=study.protocol)


def usable(arms: Mapping[str, Arm], bed: TestBed) -> Mapping[str, Arm]:
    """The arms that the data suffice for: without matched inputs, no method that learns from them alone."""
    if all(fold.training.complete_blocks for fold in bed.folds.values()):
        return arms
    return {label: arm for label, arm in arms.items() if not isinstance(arm.method, _MATCHED)}


def _is_hpob(bed: TestBed) -> bool:
    return bed.data.provenance.dataset.startswith("hpob/")


def _up_to(most: int, grid: tuple[int, ...]) -> list[int]:
    return [*(count for count in grid if count < most), most]


def _points_per_task(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    if isinstance(arm.method, _SINGLE_TASK):
        return {}
    most = max(len(task.y) for fold in bed.folds.values() for task in fold.training.tasks)
    if isinstance(arm.method, _MATCHED):
        most = min(
            sum(len(block.x) for block in fold.training.complete_blocks) for fold in bed.folds.values()
        )
    return {
        f"{label}, {count} points": Variant(replace(arm, points_per_task=count), label, count)
        for count in _up_to(most, HPOB_POINTS_PER_TASK if _is_hpob(bed) else POINTS_PER_TASK)
    }


def _training_tasks(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    if isinstance(arm.method, _SINGLE_TASK):
        return {}
    most = min(len(fold.training.tasks) for fold in bed.folds.values())
    return {
        f"{label}, {count} tasks": Variant(replace(arm, training_tasks=count), label, count)
        for count in _up_to(most, TRAINING_TASKS)
    }


def _acquisition(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    method: Any = arm.method
    if isinstance(method, Rand):
        return {}
    if not isinstance(getattr(method, "decision", None), AcquisitionDecision):
        raise InvalidInputError(
            f"{method_name(method)} has no acquisition function to vary", fix="leave the method out"
        )
    return {
        f"{label} {name}": Variant(replace(arm, method=replace(method, decision=decision)), label, name)
        for name, decision in ACQUISITIONS.items()
    }


def _structure(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    method: Any = arm.method
    if not isinstance(getattr(method, "architecture", None), Architecture):
        return {}
    variants = {}
    for mean, words in MEANS.items():
        for hidden in HPOB_FEATURES if _is_hpob(bed) else FEATURES:
            sizes = str(hidden).replace(" ", "")
            changed = replace(method, architecture=replace(method.architecture, mean=mean, hidden=hidden))
            variants[f"{label} {words} {sizes}"] = Variant(
                replace(arm, method=changed), f"{label} {words}", sizes
            )
    return variants


def _negative_transfer(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    if isinstance(arm.method, _SINGLE_TASK):
        return {}
    if not bed.flat_training_tasks:
        raise InvalidInputError(
            "no training function is flat: there is nothing to leave out",
            where=bed.data.provenance.dataset,
            fix="take data with flat functions, such as hpob/5636 or hpob/5859",
        )
    few = replace(arm, points_per_task=arm.points_per_task or FEW_POINTS)
    return {
        f"{label}, {at}": Variant(replace(few, without_flat=without), label, at)
        for at, without in (("all", False), ("without flat", True))
    }


def _held_out(label: str, arm: Arm, bed: TestBed) -> dict[str, Variant]:
    if isinstance(arm.method, _SINGLE_TASK):
        return {}
    if not any(fold.related for fold in bed.folds.values()):
        raise InvalidInputError(
            "no training task shares the dataset of a test task: there is nothing to hold out",
            where=bed.data.provenance.dataset,
        )
    return {
        f"{label}, {at}": Variant(replace(arm, without_related=without), label, at)
        for at, without in (("related held out", True), ("all but the test task", False))
    }


_HYPERBO = ("H-NLL", "H-EKL", "FSBO", "ABLR")
_FLAT = ("H-NLL", "FSBO", "ABLR", "Rand")
# In the order of the paper's sections sssec:exp-pd1-datapoints, ssec:num_training_tasks, app:exp-acfun,
# app:exp-structure, sssec:negative_transfer and sssec:hold-out-related.
_STUDIES = (
    Study(
        "points-per-task",
        "points per training task",
        (*_HYPERBO, "STBOH"),
        _points_per_task,
        "all-but-test-task",
    ),
    Study("training-tasks", "training tasks", (*_HYPERBO, "STBOH"), _training_tasks, "all-but-test-task"),
    Study("acquisition", "acquisition function", _HYPERBO, _acquisition),
    Study("structure", "features", ("H-NLL", "H-EKL"), _structure),
    Study("negative-transfer", "training functions", _FLAT, _negative_transfer),
    Study("held-out", "training tasks", (*_HYPERBO, "STBOH"), _held_out, "all-but-test-task"),
)
STUDIES = {study.name: study for study in _STUDIES}
