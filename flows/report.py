"""Report: the records of all runs joined to one evaluation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import task
from prefect.cache_policies import NO_CACHE

from flows import evaluation_folder, ledger
from flows.environment import run_facts
from flows.evaluation_folder import RECORDS_NAME
from flows.experiment import Experiment
from flows.identities import (
    Failures,
    Key,
    evaluation_identity,
    partial_identity,
    prior_identities,
    running_code,
    simulation_identities,
)
from flows.pretrain import LOSSES_OF_PRIOR
from flows.progress import say
from flows.protocols import TestBed
from hyperbo.errors import NotAvailableError, NumericalError
from hyperbo.evaluation.join import Evaluation
from hyperbo.evaluation.metadata import validate_metadata
from hyperbo.evaluation.records import read_records
from hyperbo.methods import PretrainedMethod
from hyperbo.warping import output_warping
from pd1_builder.catalog import find
from pd1_builder.manifest import read_manifest


@dataclass(frozen=True)
class _Finished:
    """The folders of an arm's finished runs."""

    simulations: Mapping[Key, Path]
    priors: Mapping[Key, Path]
    # Losses on the test tasks of another version are no matter of this evaluation.
    trained_here: bool


@task(persist_result=False, cache_policy=NO_CACHE)
def write_evaluation(experiment: Experiment, command: str, failures: Failures) -> Path:
    """Join the records of all runs and write them with metadata and report, where that is not done.

    Args:
      experiment: what is compared.
      command: what to type to run it again.
      failures: runs that failed, and why: they are reported as missing.

    Returns:
      The folder of the evaluation.

    Raises:
      NotAvailableError: a run that did not fail is not in the ledger.
      NumericalError: every run failed.
      HyperBOError: as `hyperbo.evaluation.report.write_report`.
    """
    bed = experiment.test_bed()
    finished = {}
    for label, arm in experiment.arms.items():
        priors = prior_identities(experiment, bed, arm) if isinstance(arm.method, PretrainedMethod) else {}
        finished[label] = _Finished(
            _found(experiment, label, simulation_identities(experiment, bed, arm), failures),
            _found(experiment, label, priors, failures),
            arm.trained_on is None,
        )
    ids = {label: [found.name for found in of_arm.simulations.values()] for label, of_arm in finished.items()}
    if not any(ids.values()):
        raise NumericalError(f"every run failed; the first: {_failed_runs(failures)[0]['reason']}")
    identity = evaluation_identity(experiment, bed, ids)
    folder = ledger.run_folder(experiment.runs, identity)
    if ledger.find(experiment.runs, identity) is not None:
        say("report: present, nothing to do")
        return folder
    started = time.time()
    evaluation = Evaluation(
        _records(finished),
        validate_metadata(_metadata(experiment, bed, command, finished, failures)),
        _losses(finished, bed),
    )
    ledger.finish(
        experiment.runs,
        identity,
        lambda folder: evaluation_folder.write(folder, evaluation),
        run_facts(started),
    )
    say(f"report: written in {time.time() - started:.0f} s")
    return folder


def _found(
    experiment: Experiment, label: str, identities: Mapping[Key, ledger.Identity], failures: Failures
) -> dict[Key, Path]:
    folders = {}
    for key, identity in identities.items():
        folder, failed = ledger.find(experiment.runs, identity), failures.get((label, key))
        if folder is None and failed is None:
            raise NotAvailableError(
                f"the {identity['kind']} of {label} on {key[0]} with seed {key[1]} is not in "
                f"{experiment.runs}; run the whole job"
            )
        if folder is None and failed is not None:
            folder = ledger.find(experiment.runs, partial_identity(identity, failed))
        if folder is not None:
            folders[key] = folder
    return folders


def _records(finished: Mapping[str, _Finished]) -> pd.DataFrame:
    # A run is recorded under its method; under which label an experiment has it is the experiment's matter.
    return pd.concat(
        [
            read_records(folder / RECORDS_NAME).assign(method=label)
            for label, of_arm in finished.items()
            for folder in of_arm.simulations.values()
        ],
        ignore_index=True,
    )


def _losses(finished: Mapping[str, _Finished], bed: TestBed) -> pd.DataFrame | None:
    """The losses of a prior under the seeds of all runs that it served; those of test tasks alone."""
    tests = {test.name for test in bed.tests}
    frames = [
        pd.read_parquet(folder / LOSSES_OF_PRIOR).assign(method=label, seed=run_seed)
        for label, of_arm in finished.items()
        if of_arm.trained_here
        for (_, seed), folder in of_arm.priors.items()
        for run_seed in bed.run_seeds(seed)
    ]
    if not frames:
        return None
    losses = pd.concat(frames, ignore_index=True)
    tested = losses["held_out"].isin(tests | bed.folds.keys()) & losses["task"].isin({"", *tests})
    return losses[tested].reset_index(drop=True)


def _metadata(
    experiment: Experiment,
    bed: TestBed,
    command: str,
    finished: Mapping[str, _Finished],
    failures: Failures,
) -> dict[str, Any]:
    """What the records came from: costs, times and platforms are those of the runs, whenever they ran."""
    folders = [folder for of_arm in finished.values() for folder in of_arm.priors.values()]
    folders += [folder for of_arm in finished.values() for folder in of_arm.simulations.values()]
    facts = {folder: ledger.facts(folder) for folder in folders}
    every = list(facts.values())
    seconds = _seconds(finished, facts)
    parameters = read_manifest(find(experiment.dataset, experiment.data_dir).folder).parameters
    provenance = bed.data.provenance
    return {
        "dataset": provenance.dataset,
        "manifest_hash": provenance.manifest_hash,
        "preparation": provenance.preparation,
        "protocol": bed.protocol,
        "code_version": running_code(),
        "methods": {label: arm.description() for label, arm in experiment.arms.items()},
        "tasks": [each.name for each in bed.tests],
        "seeds": [run_seed for seed in experiment.seeds for run_seed in bed.run_seeds(seed)],
        "iterations": experiment.iterations,
        **({"regret": "normalised"} if bed.normalised else {}),
        **({"runs_per_prior": bed.runs_per_seed} if bed.runs_per_seed > 1 else {}),
        "platform": {
            name: "; ".join(sorted({fact["platform"][name] for fact in every}))
            for name in every[0]["platform"]
        },
        "seconds": {
            step: {label: sum(of_runs.values()) for label, of_runs in of_step.items()}
            for step, of_step in seconds.items()
        },
        "total_seconds": {
            step: sum({run: value for of_runs in of_step.values() for run, value in of_runs.items()}.values())
            for step, of_step in seconds.items()
        },
        "started": min(fact["started"] for fact in every),
        "finished": max(fact["finished"] for fact in every),
        "run_ids": [folder.name for folder in facts],
        "command": command,
        "objective": {
            "name": str(parameters["objective"]),
            "direction": output_warping(str(parameters["warping"])).direction,
        },
        "flat_tasks": list(bed.flat_training_tasks),
        "failures": _failed_runs(failures),
    }


def _failed_runs(failures: Failures) -> list[dict[str, Any]]:
    """What failed, run by run, as metadata have it."""
    return [
        {"method": label, "task": task_name, "seed": run_seed, "reason": reason}
        for (label, _), runs in failures.items()
        for (task_name, run_seed), reason in runs.items()
    ]


def _seconds(
    finished: Mapping[str, _Finished], facts: Mapping[Path, Mapping[str, Any]]
) -> dict[str, dict[str, dict[Path, float]]]:
    """Seconds by step, arm and run.

    To pre-train takes those of priors in the ledger, and those of what methods without priors learned before
    they were simulated. Arms that differ in their decision share priors: each needs them, and has their
    seconds.
    """
    learned: dict[str, dict[Path, float]] = {}
    simulated: dict[str, dict[Path, float]] = {}
    for label, of_arm in finished.items():
        simulations = of_arm.simulations.values()
        simulated[label] = {run: facts[run]["seconds"] for run in simulations}
        if of_arm.priors:
            learned[label] = {run: facts[run]["seconds"] for run in of_arm.priors.values()}
        else:
            fitted = {run: facts[run]["fit_seconds"] for run in simulations}
            learned |= {label: fitted} if sum(fitted.values()) >= 1.0 else {}
    return {"pre-train": learned, "evaluate": simulated}
