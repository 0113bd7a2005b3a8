"""What runs of an experiment are: the identities under which the ledger knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata
from typing import Any

from flows import ledger
from flows.experiment import Arm, Experiment
from flows.ledger import run_id
from flows.methods import method_identity
from flows.protocols import TestBed
from hyperbo.code_version import code_version
from hyperbo.folds import Fold
from hyperbo.methods import PretrainedMethod
from hyperbo.subsets import only_tasks
from hyperbo.tuning_data import TuningData

# A run of a method: the fold, and the seed of what is learned.
Key = tuple[str, int]
Identities = dict[Key, dict[str, Any]]
# Runs of Bayesian optimization that failed, by test task and seed in records, and why.
RunFailures = Mapping[tuple[str, int], str]
# What failed, by arm and run of its method.
Failures = Mapping[tuple[str, Key], RunFailures]

# What a pre-trained method decides by; its prior does not depend on it.
_NOT_OF_THE_PRIOR = ("decision", "refit_iterations")


@cache
def running_code() -> str:
    """Version of the code of this process. Read once: sources edited later are not what is running."""
    return code_version("hyperbo", "pd1_builder", "flows")


@cache
def libraries() -> dict[str, str]:
    """Versions of the libraries that decide the numbers."""
    return {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}


def prior_identities(experiment: Experiment, bed: TestBed, arm: Arm) -> Identities:
    """Priors: a method pre-trained from a seed on a fold's training tasks.

    Arms that differ in nothing that pre-training depends on share their priors.

    Raises:
      InvalidInputError: an arm leaves no training task.
      HyperBOError: as `Experiment.training_bed`.
    """
    method = method_identity(arm.method)
    method["configuration"] = {
        name: value for name, value in method["configuration"].items() if name not in _NOT_OF_THE_PRIOR
    }
    return _of_arm("prior", method, experiment, experiment.training_bed(arm, bed), arm)


def simulation_identities(experiment: Experiment, bed: TestBed, arm: Arm) -> Identities:
    """Simulations: Bayesian optimization by a method from a seed on all test tasks of a fold.

    Raises:
      InvalidInputError: as `prior_identities`.
    """
    training = experiment.training_bed(arm, bed)
    identities = _of_arm("simulation", method_identity(arm.method), experiment, training, arm)
    priors = prior_identities(experiment, bed, arm) if isinstance(arm.method, PretrainedMethod) else {}
    for key, identity in identities.items():
        identity |= {
            "protocol": bed.protocol,
            "tests": [task.name for task in bed.folds[key[0]].tests],
            "iterations": experiment.iterations,
        }
        if training is not bed:
            identity |= {"trained_on": asdict(training.data.provenance), **asdict(bed.data.provenance)}
        if priors:
            identity["prior"] = run_id(priors[key])
    return identities


def all_failed(bed: TestBed, key: Key, reason: str) -> RunFailures:
    """All runs of a simulation, for one reason."""
    held_out, seed = key
    return {
        (test.name, run_seed): reason
        for test in bed.folds[held_out].tests
        for run_seed in bed.run_seeds(seed)
    }


def partial_identity(identity: ledger.Identity, failures: RunFailures) -> dict[str, Any]:
    """A simulation without the runs that failed.

    It is another than the whole one, which stays missing: a later start tries that again.
    """
    return {**identity, "failed": [list(run) for run in failures]}


def evaluation_identity(
    experiment: Experiment, bed: TestBed, simulations: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """An evaluation: the simulations of all arms joined, with their report, which is about the first arm.

    One that lacks runs is another than the one that has them, so that it does not stand in the way.

    Args:
      experiment: what is compared.
      bed: its data under its protocol.
      simulations: by arm, the ids in the ledger of those that are there.
    """
    return {
        "kind": "evaluation",
        **asdict(bed.data.provenance),
        "protocol": bed.protocol,
        "seeds": list(experiment.seeds),
        "iterations": experiment.iterations,
        "arms": {label: arm.description() for label, arm in experiment.arms.items()},
        # Objects compare without the order of their keys.
        "order": list(experiment.arms),
        "simulations": {label: list(of_arm) for label, of_arm in simulations.items()},
        "code_version": running_code(),
    }


def _of_arm(
    kind: str, method: Mapping[str, Any], experiment: Experiment, bed: TestBed, arm: Arm
) -> Identities:
    common = {
        "kind": kind,
        **asdict(bed.data.provenance),
        **method,
        "code_version": running_code(),
        "libraries": libraries(),
    }
    return {
        (fold.name, seed): common
        | {"held_out": fold.name, "seed": seed, "training": _training(arm, fold, seed)}
        for fold in bed.folds.values()
        for seed in experiment.seeds
    }


def _training(arm: Arm, fold: Fold, seed: int) -> dict[str, Any]:
    """What is learned from; a limit that limits nothing is none."""
    data = arm.training(fold, seed)
    return {
        "tasks": [task.name for task in data.tasks],
        "points_per_task": arm.points_per_task if _limits(arm, data, fold.training) else None,
    }


def _limits(arm: Arm, data: TuningData, whole: TuningData) -> bool:
    unlimited = only_tasks(whole, {task.name for task in data.tasks})
    most = max(len(task.y) for task in unlimited.tasks)
    matched = sum(len(block.x) for block in unlimited.complete_blocks)
    return arm.points_per_task is not None and max(most, matched) > arm.points_per_task
