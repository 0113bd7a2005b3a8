"""The plan of an experiment: its data are read once, its folds laid out once, its runs identified once.

Every step takes the plan. A run's identity is the plain JSON under which the ledger knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib import metadata
from threading import Lock
from typing import Any

from hyperbo.data.subsets import only_tasks
from hyperbo.data.tuning_data import TuningData
from hyperbo.methods import Method, PretrainedMethod
from hyperbo.storage.code_version import EVALUATION, NUMERIC, code_version
from hyperbo.storage.printable import count
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.methods import method_identity
from hyperbo_flows.experiments.protocols import TestBed, lay_out, of_everything, with_training_data
from hyperbo_flows.experiments.work import Key, Part
from hyperbo_flows.process.progress import say
from pd1_builder import load
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import read_manifest

Identities = Mapping[Key, Mapping[str, Any]]

# Settings that a pre-trained method decides by; its prior does not depend on them.
_NOT_OF_THE_PRIOR = ("decision", "refit_iterations")


@cache
def numeric_code() -> str:
    """Version of the code that decides priors and simulations, read once: later edits are not what runs."""
    return code_version(*NUMERIC)


@cache
def evaluation_code() -> str:
    """Version of the code that decides evaluations, read once: later edits are not what runs."""
    return code_version(*EVALUATION)


@cache
def libraries() -> dict[str, str]:
    """Versions of the libraries that decide the numbers."""
    return {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}


@dataclass(frozen=True)
class PlannedArm:
    """An arm of an experiment with its data.

    Attributes:
      arm: the method, and what of the training data it gets to see.
      experiment: what the arm belongs to.
      test_bed: what is tested, and by which protocol.
    """

    arm: Arm
    experiment: Experiment
    test_bed: TestBed

    @property
    def method(self) -> Method:
        """The arm's method."""
        return self.arm.method

    @cached_property
    def training_bed(self) -> TestBed:
        """The test bed with what the arm is trained on in its folds: `test_bed`, unless it names a version.

        Raises:
          NotAvailableError: the version that the arm is trained on is not there.
          InvalidInputError: the version cannot be read, or leaves a fold no training task.
        """
        version, experiment = self.arm.trained_on, self.experiment
        if version in (None, experiment.dataset):
            return self.test_bed
        other = load(version, experiment.preparation, data_dir=experiment.data_dir)
        return with_training_data(self.test_bed, other)

    def training_data(self, key: Key) -> TuningData:
        """What the method learns from in a run."""
        held_out, seed = key
        return self.arm.training(self.training_bed.folds[held_out], seed)

    @cached_property
    def priors(self) -> Identities:
        """The method pre-trained from every seed on every fold's training tasks; empty where it has no prior.

        Arms that differ in nothing that pre-training depends on share their priors.

        Raises:
          InvalidInputError: the arm leaves no training task.
        """
        if not isinstance(self.method, PretrainedMethod):
            return {}
        method = method_identity(self.method.trained_as)
        settings = {
            name: value for name, value in method["configuration"].items() if name not in _NOT_OF_THE_PRIOR
        }
        return {
            key: self._identity("prior", {**method, "configuration": settings}, key) for key in self._keys
        }

    @cached_property
    def simulations(self) -> Identities:
        """Bayesian optimization by the method from every seed on all test tasks of every fold.

        Raises:
          InvalidInputError: the arm leaves no training task.
        """
        return {key: self._simulation(key) for key in self._keys}

    @property
    def _keys(self) -> list[Key]:
        return [(held_out, seed) for held_out in self.test_bed.folds for seed in self.experiment.seeds]

    def _simulation(self, key: Key) -> dict[str, Any]:
        tested = self.test_bed
        identity = self._identity("simulation", method_identity(self.method), key) | {
            "protocol": tested.protocol,
            "tests": [task.name for task in tested.folds[key[0]].tests],
            "iterations": self.experiment.iterations,
        }
        if self.training_bed is not tested:
            trained_on = asdict(self.training_bed.data.provenance)
            identity |= {"trained_on": trained_on, **asdict(tested.data.provenance)}
        if self.priors:
            identity["prior"] = ledger.run_id(self.priors[key])
        return identity

    def _identity(self, kind: str, method: Mapping[str, Any], key: Key) -> dict[str, Any]:
        held_out, seed = key
        return {
            "kind": kind,
            **asdict(self.training_bed.data.provenance),
            **method,
            "code_version": numeric_code(),
            "libraries": libraries(),
            "held_out": held_out,
            "seed": seed,
            "training": self._training[key],
        }

    @cached_property
    def _training(self) -> dict[Key, dict[str, Any]]:
        """What is learned from. A limit that limits nothing is left out."""
        described = {}
        for key in self._keys:
            data = self.training_data(key)
            limited = limits(self.arm, data, self.training_bed.folds[key[0]].training)
            described[key] = {
                "tasks": [task.name for task in data.tasks],
                "points_per_task": self.arm.points_per_task if limited else None,
            }
        return described


def limits(arm: Arm, data: TuningData, whole: TuningData) -> bool:
    """Whether an arm's limit leaves points out: `data` is what it trains on, `whole` that of its fold."""
    if arm.points_per_task is None:
        return False
    unlimited = only_tasks(whole, {task.name for task in data.tasks})
    most = max(len(task.y) for task in unlimited.tasks)
    matched = sum(len(block.x) for block in unlimited.complete_blocks)
    return max(most, matched) > arm.points_per_task


@dataclass(frozen=True)
class Plan:
    """An experiment with its data.

    Another process that gets a plan gets the experiment alone, and reads the data itself, once.

    Attributes:
      experiment: what is compared, and where the runs are.
      test_bed: its data under its protocol.
      objective: name of the objective in the version.
      warping: name of its output warping.
      for_use: whether nothing is held out: the priors are for use, not for tests.
    """

    experiment: Experiment
    test_bed: TestBed
    objective: str
    warping: str
    for_use: bool = False

    @cached_property
    def arms(self) -> Mapping[str, PlannedArm]:
        """The arms by their labels."""
        return {
            label: PlannedArm(arm, self.experiment, self.test_bed)
            for label, arm in self.experiment.arms.items()
        }

    def parts(self, by_fold: bool) -> list[Part]:
        """The parts of the experiment: its arms, or the folds of every arm."""
        folds = list(self.test_bed.folds) if by_fold else [None]
        return [Part(label, held_out) for label in self.experiment.arms for held_out in folds]

    def with_arms(self, arms: Mapping[str, Arm]) -> Plan:
        """The plan of other arms on the same data."""
        return replace(self, experiment=replace(self.experiment, arms=arms))

    def of_prior_for_use(self, label: str) -> Plan:
        """The plan of one arm with its first seed, where nothing is held out."""
        experiment = self.experiment
        alone = replace(experiment, arms={label: experiment.arms[label]}, seeds=experiment.seeds[:1])
        return replace(self, experiment=alone, test_bed=of_everything(self.test_bed), for_use=True)

    def simulations_recorded(self) -> tuple[int, int]:
        """How many simulations of all arms are in the ledger, and how many are not."""
        runs = self.experiment.runs
        missing = sum(len(ledger.missing(runs, arm.simulations)) for arm in self.arms.values())
        return sum(len(arm.simulations) for arm in self.arms.values()) - missing, missing

    def outlook(self) -> str:
        """How much there is to do, in a line. What several arms share counts once."""
        return f"{count(len(self.arms), 'arm')}; {outlook([self])}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.experiment, self.for_use)


def outlook(plans: Sequence[Plan]) -> str:
    """How many priors and simulations plans have, and how many of them are present; each counts once."""
    arms = [(plan.experiment.runs, arm) for plan in plans for arm in plan.arms.values()]
    parts = []
    for kind, identities in (
        ("prior", [(runs, arm.priors) for runs, arm in arms]),
        ("simulation", [(runs, arm.simulations) for runs, arm in arms]),
    ):
        different = {
            (runs, ledger.run_id(identity)): identity
            for runs, each in identities
            for identity in each.values()
        }
        present = sum(ledger.find(runs, identity) is not None for (runs, _), identity in different.items())
        parts.append(f"{count(len(different), kind)}, of which {present} present")
    return "; ".join(parts)


def make_plan(experiment: Experiment) -> Plan:
    """Read the data of an experiment, and lay them out as its protocol asks.

    Raises:
      InvalidInputError: the data have not what the protocol needs.
      NotAvailableError: the version is not there.
    """
    test_bed = lay_out(
        experiment.dataset,
        experiment.preparation,
        experiment.protocol,
        experiment.not_tested,
        experiment.data_dir,
        repeats=experiment.repeats,
        train=experiment.train,
        test=experiment.test,
    )
    _tell_small_tasks(test_bed, experiment.iterations)
    parameters = read_manifest(find(experiment.dataset, experiment.data_dir).folder).parameters
    return Plan(experiment, test_bed, str(parameters["objective"]), str(parameters["warping"]))


# The plan that this process made last for another one: the parts of a step come one after another.
_made: list[Plan] = []
_making = Lock()


def _made_again(experiment: Experiment, for_use: bool) -> Plan:
    with _making:  # A worker may have several threads, and the data are read once for all of them.
        if not _made or _made[0].experiment != experiment:
            _made[:] = [make_plan(experiment)]
        plan = _made[0]
    return plan.of_prior_for_use(next(iter(experiment.arms))) if for_use else plan


def _tell_small_tasks(test_bed: TestBed, iterations: int) -> None:
    """Print a line where runs have more iterations than trials that they may observe once."""
    if test_bed.repeats:
        return
    left = {
        task.name: len(task.y) - max(len(set(rows)) for rows in test_bed.beginnings.get(task.name, ((),)))
        for task in test_bed.tests
    }
    small = [f"{name} ({trials})" for name, trials in left.items() if trials < iterations]
    if small:
        say(
            f"fewer trials than {count(iterations, 'iteration')}, so that runs end with repeats at a regret "
            f"of 0: {', '.join(small)}"
        )
