"""Write an evaluation: the records of all runs joined, with losses, metadata and report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from hyperbo.data.warping import output_warping
from hyperbo.errors import NotAvailableError, NumericalError
from hyperbo.evaluation.records.join import Evaluation
from hyperbo.evaluation.records.metadata import validate_metadata
from hyperbo.evaluation.records.runs import read_records
from hyperbo_flows.experiments import evaluation_folder, ledger
from hyperbo_flows.experiments.evaluation_folder import RECORDS_NAME
from hyperbo_flows.experiments.methods import method_name, method_summary
from hyperbo_flows.experiments.plan import Plan, evaluation_code
from hyperbo_flows.experiments.pretrain import LOSSES_OF_PRIOR
from hyperbo_flows.experiments.protocols import TestBed
from hyperbo_flows.experiments.work import Failures, Key, partial_identity
from hyperbo_flows.process.environment import run_facts
from hyperbo_flows.process.progress import say


@dataclass(frozen=True)
class _Finished:
    """The folders of an arm's finished simulations and priors, by run."""

    simulations: Mapping[Key, Path]
    priors: Mapping[Key, Path]
    # Whether the priors are trained on the version that is tested on. The losses of others on its test tasks
    # are not written down.
    trained_here: bool


def write_evaluation(plan: Plan, command: str, failures: Failures) -> Path:
    """Join the records of all runs and write them with metadata and report, where that is not done.

    Args:
      plan: what is compared, on which data.
      command: what to type to run it again.
      failures: runs that failed, and why: they are reported as missing.

    Returns:
      The folder of the evaluation.

    Raises:
      NotAvailableError: a run that did not fail is not in the ledger.
      NumericalError: every run failed.
    """
    runs, finished = plan.experiment.runs, _finished(plan, failures)
    identity = _identity(plan, finished)
    folder = ledger.run_folder(runs, identity)
    if ledger.find(runs, identity) is not None:
        say("report: present, nothing to do")
        return folder
    started = time.time()
    evaluation = replace(
        _evaluation(plan, command, finished, failures), losses=_losses(finished, plan.test_bed)
    )
    ledger.finish(
        runs, identity, lambda folder: evaluation_folder.write(folder, evaluation), run_facts(started)
    )
    say(f"report: written in {time.time() - started:.0f} s")
    return folder


def recorded_evaluation(plan: Plan, command: str, failures: Failures) -> Evaluation:
    """The records and metadata of an experiment whose runs are done, as `write_evaluation` writes them.

    Raises:
      NotAvailableError: a run that did not fail is not in the ledger.
      NumericalError: every run failed.
    """
    return _evaluation(plan, command, _finished(plan, failures), failures)


def _evaluation(
    plan: Plan, command: str, finished: Mapping[str, _Finished], failures: Failures
) -> Evaluation:
    metadata = validate_metadata(_metadata(plan, command, finished, failures))
    return Evaluation(_records(finished), metadata)


def _finished(plan: Plan, failures: Failures) -> dict[str, _Finished]:
    runs = plan.experiment.runs
    finished = {
        label: _Finished(
            _found(runs, label, arm.simulations, failures),
            _found(runs, label, arm.priors, failures),
            arm.arm.trained_on is None,
        )
        for label, arm in plan.arms.items()
    }
    if not any(arm.simulations for arm in finished.values()):
        raise NumericalError(f"every run failed; the first: {_failed_runs(failures)[0]['reason']}")
    return finished


def _found(
    runs: Path, label: str, identities: Mapping[Key, ledger.Identity], failures: Failures
) -> dict[Key, Path]:
    folders = {}
    for key, identity in identities.items():
        folder, failed = ledger.find(runs, identity), failures.get((label, key))
        if folder is None and failed is None:
            raise NotAvailableError(
                f"the {identity['kind']} of {label} on {key[0]} with seed {key[1]} is not in {runs}; run the "
                "whole job"
            )
        if folder is None and failed is not None:
            folder = ledger.find(runs, partial_identity(identity, failed))
        if folder is not None:
            folders[key] = folder
    return folders


def _identity(plan: Plan, finished: Mapping[str, _Finished]) -> dict[str, Any]:
    """The identity of the evaluation, whose report is about the first arm.

    An evaluation that lacks runs has another identity than one that has them, and does not stand in its way.
    """
    experiment, test_bed = plan.experiment, plan.test_bed
    return {
        "kind": "evaluation",
        **asdict(test_bed.data.provenance),
        "protocol": test_bed.protocol,
        "seeds": list(experiment.seeds),
        "iterations": experiment.iterations,
        "arms": {label: arm.description() for label, arm in experiment.arms.items()},
        # Objects compare without the order of their keys.
        "order": list(experiment.arms),
        "simulations": {
            label: [folder.name for folder in arm.simulations.values()] for label, arm in finished.items()
        },
        "code_version": evaluation_code(),
    }


def _records(finished: Mapping[str, _Finished]) -> pd.DataFrame:
    # The ledger's records name the method; an evaluation names the arm's label.
    return pd.concat(
        [
            read_records(folder / RECORDS_NAME).assign(method=label)
            for label, arm in finished.items()
            for folder in arm.simulations.values()
        ],
        ignore_index=True,
    )


def _losses(finished: Mapping[str, _Finished], bed: TestBed) -> pd.DataFrame | None:
    """The losses of every prior on test tasks, under the seeds of all runs that the prior served."""
    tests = {test.name for test in bed.tests}
    frames = [
        pd.read_parquet(folder / LOSSES_OF_PRIOR).assign(method=label, seed=run_seed)
        for label, arm in finished.items()
        if arm.trained_here
        for (_, seed), folder in arm.priors.items()
        for run_seed in bed.run_seeds(seed)
    ]
    if not frames:
        return None
    losses = pd.concat(frames, ignore_index=True)
    tested = losses["held_out"].isin(tests | bed.folds.keys()) & losses["task"].isin({"", *tests})
    return losses[tested].reset_index(drop=True)


def _metadata(
    plan: Plan, command: str, finished: Mapping[str, _Finished], failures: Failures
) -> dict[str, Any]:
    """What the records came from. Costs, times and platforms are those of the runs, whenever they ran."""
    experiment, test_bed = plan.experiment, plan.test_bed
    folders = [folder for arm in finished.values() for folder in arm.priors.values()]
    folders += [folder for arm in finished.values() for folder in arm.simulations.values()]
    facts = {folder: ledger.facts(folder) for folder in folders}
    every = list(facts.values())
    seconds = _seconds(finished, facts)
    provenance = test_bed.data.provenance
    told = {method_name(arm.method): method_summary(arm.method) for arm in experiment.arms.values()}
    summaries = {name: summary for name, summary in told.items() if summary}
    return {
        "dataset": provenance.dataset,
        "manifest_hash": provenance.manifest_hash,
        "preparation": provenance.preparation,
        "protocol": test_bed.protocol,
        "code_version": evaluation_code(),
        "methods": {label: arm.description() for label, arm in experiment.arms.items()},
        "tasks": [each.name for each in test_bed.tests],
        "seeds": [run_seed for seed in experiment.seeds for run_seed in test_bed.run_seeds(seed)],
        "iterations": experiment.iterations,
        **({"regret": "normalised"} if test_bed.normalised else {}),
        **({"runs_per_prior": test_bed.runs_per_seed} if test_bed.runs_per_seed > 1 else {}),
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
        "objective": {"name": plan.objective, "direction": output_warping(plan.warping).direction},
        "flat_tasks": list(test_bed.flat_training_tasks),
        **({"summaries": summaries} if summaries else {}),
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

    The step "pre-train" has the seconds of priors in the ledger, and those in which methods without priors
    learned before they were simulated. Arms that share priors have their seconds each.
    """
    learned: dict[str, dict[Path, float]] = {}
    simulated: dict[str, dict[Path, float]] = {}
    for label, arm in finished.items():
        simulations = arm.simulations.values()
        simulated[label] = {run: facts[run]["seconds"] for run in simulations}
        if arm.priors:
            learned[label] = {run: facts[run]["seconds"] for run in arm.priors.values()}
        else:
            fitted = {run: facts[run]["fit_seconds"] for run in simulations}
            learned |= {label: fitted} if sum(fitted.values()) >= 1.0 else {}
    return {"pre-train": learned, "evaluate": simulated}
