"""Evaluate: the runs of Bayesian optimization that the ledger lacks, then records, metadata and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import ledger
from flows.environment import run_facts
from flows.evaluation_folder import RECORDS_NAME
from flows.experiment import Arm, Experiment
from flows.failures import isolate, tell_single_runs
from flows.identities import (
    Failures,
    Identities,
    Key,
    RunFailures,
    all_failed,
    partial_identity,
    prior_identities,
    simulation_identities,
)
from flows.methods import method_name
from flows.progress import progress_line, say
from flows.protocols import TestBed
from flows.report import write_evaluation
from hyperbo.errors import NotAvailableError, NumericalError
from hyperbo.evaluation.findings import count
from hyperbo.evaluation.records import write_records
from hyperbo.methods import PretrainedMethod, prior_in_use
from hyperbo.pretrain import Job, outcomes_of
from hyperbo.prior import load_prior
from hyperbo.run_records import run_records
from hyperbo.simulate import Run, Simulation, simulate


@flow(name="evaluate", flow_run_name="{experiment.dataset}", validate_parameters=False)
def evaluate(experiment: Experiment, command: str, failures: Failures | None = None) -> Path:
    """Run what is missing of every arm, then join all records to an evaluation with its report.

    Args:
      experiment: what is compared.
      command: what to type to run it again; written into the report.
      failures: runs whose priors could not be trained, and why.

    Returns:
      The folder of the evaluation: records, metadata, report.

    Raises:
      HyperBOError: as `simulate_arm` and `write_evaluation`.
    """
    failed = dict(failures or {})
    for label in experiment.arms:
        failed |= simulate_arm(experiment, label, failed)
    return write_evaluation(experiment, command, failed)


@task(task_run_name="evaluate {label}", persist_result=False, cache_policy=NO_CACHE)
def simulate_arm(
    experiment: Experiment, label: str, failures: Failures, held_out: str | None = None
) -> Failures:
    """Simulate an arm's missing runs and record each in the ledger as soon as it is finished.

    Where single runs of Bayesian optimization fail, the others are recorded as a part
    (`flows.identities.partial_identity`); a later start simulates the whole again.

    Args:
      experiment: what is compared.
      label: of the arm.
      failures: runs that are not to be tried, for their priors could not be trained.
      held_out: name of the only fold to simulate; None: all.

    Returns:
      The runs that failed here, and why.

    Raises:
      NotAvailableError: a prior that the runs need is not in the ledger.
      HyperBOError: as `Experiment.test_bed`.
    """
    bed, arm = experiment.test_bed(), experiment.arms[label]
    identities = simulation_identities(experiment, bed, arm)
    if held_out is not None:
        identities = {key: identity for key, identity in identities.items() if key[0] == held_out}
    unrecorded = ledger.missing(experiment.runs, identities)
    present = len(identities) - len(unrecorded)
    missing = [key for key in unrecorded if (label, key) not in failures]
    what = f"evaluate {label}" + (f", {held_out} held out" if held_out else "")
    if not missing:
        say(f"{what}: {count(present, 'simulation')} present, nothing to do")
        return {}
    priors = _priors(experiment, bed, arm, label, missing)
    partly: dict[Key, RunFailures] = {}
    started = time.time()

    def work(keys: Sequence[Key]) -> dict[Key, Exception]:
        begun = time.time()
        fitted, failed = _fitted(bed, arm, keys, priors, label)
        seconds = (time.time() - begun) / len(keys)
        if fitted:
            _simulate(experiment, bed, arm, label, fitted, identities, seconds, partly)
        return failed

    def done(key: Key) -> bool:
        return key in partly or ledger.find(experiment.runs, identities[key]) is not None

    wholly = isolate(what, missing, work, done)
    tell_single_runs(what, partly)
    failed = {key: all_failed(bed, key, reason) for key, reason in wholly.items()} | partly
    seconds, recorded = time.time() - started, count(len(missing) - len(failed), "simulation")
    say(
        f"{what}: {recorded} in {seconds:.0f} s, {present} were present"
        + (f", {len(failed)} failed" if failed else "")
    )
    return {(label, key): runs for key, runs in failed.items()}


def untrained(experiment: Experiment) -> Failures:
    """The runs whose priors are not in the ledger, beside others of their arm that are.

    Raises:
      NotAvailableError: no prior of an arm is there.
      HyperBOError: as `Experiment.test_bed`.
    """
    bed, failures = experiment.test_bed(), dict[tuple[str, Key], RunFailures]()
    for label, arm in experiment.arms.items():
        if not isinstance(arm.method, PretrainedMethod):
            continue
        identities = prior_identities(experiment, bed, arm)
        missing = ledger.missing(experiment.runs, identities)
        if len(missing) == len(identities):
            raise NotAvailableError(
                f"no prior of {label} for {experiment.dataset} is in {experiment.runs}; run the pretrain "
                "flow first"
            )
        failures |= {(label, key): all_failed(bed, key, "its prior is not there") for key in missing}
    return failures


def _priors(
    experiment: Experiment, bed: TestBed, arm: Arm, label: str, keys: Sequence[Key]
) -> Mapping[Key, Path]:
    if not isinstance(arm.method, PretrainedMethod):
        return {}
    identities = prior_identities(experiment, bed, arm)
    found = {}
    for key in keys:
        folder = ledger.find(experiment.runs, identities[key])
        if folder is None:
            raise NotAvailableError(
                f"no prior of {label} with {key[0]} held out and seed {key[1]} is in {experiment.runs}; "
                "run the pretrain flow first"
            )
        found[key] = folder
    return found


def _fitted(
    bed: TestBed, arm: Arm, keys: Sequence[Key], priors: Mapping[Key, Path], label: str
) -> tuple[dict[Key, Any], dict[Key, Exception]]:
    """What the method learned for each run, read where it is a prior, else learned now; and what failed."""
    method = arm.method
    if isinstance(method, PretrainedMethod):
        found = ((key, load_prior(priors[key])) for key in keys)
        return {
            key: prior_in_use(prior.gp, len(prior.description.training_tasks)) for key, prior in found
        }, {}
    jobs = [Job(arm.training(bed.folds[held_out], seed), seed) for held_out, seed in keys]
    with progress_line(f"fit {label}", "steps") as progress:
        outcomes = dict(zip(keys, outcomes_of(lambda: method.fit(jobs, progress)), strict=True))
    failed: dict[Key, Exception] = {
        key: outcome for key, outcome in outcomes.items() if isinstance(outcome, NumericalError)
    }
    return {key: learned for key, learned in outcomes.items() if key not in failed}, failed


def _simulate(
    experiment: Experiment,
    bed: TestBed,
    arm: Arm,
    label: str,
    fitted: Mapping[Key, Any],
    identities: Identities,
    fit_seconds: float,
    partly: dict[Key, RunFailures],
) -> None:
    """Simulate and record; `partly` gets what failed of each simulation that is not whole."""
    both = {key: _runs(bed, arm, key, learned) for key, learned in fitted.items()}
    partly.update({key: unprepared for key, (of_key, unprepared) in both.items() if not of_key})
    runs = {key: of_key for key, (of_key, _) in both.items() if of_key}
    if not runs:
        return

    def record(key: Key, simulation: Simulation, facts: Mapping[str, Any]) -> None:
        identity = identities[key]
        ran = list(zip(runs[key], simulation.failures, strict=True))
        _, unprepared = both[key]
        failures = dict(unprepared) | {
            (run.task.name, run.seed): reason for run, reason in ran if reason is not None
        }
        usable = [row for row, (_, reason) in enumerate(ran) if reason is None]
        if failures:
            partly[key] = failures
            identity = partial_identity(identity, failures)
        if not usable:
            return
        records = run_records(
            method_name(arm.method), [runs[key][row] for row in usable], simulation.rows(usable)
        )
        records["prior"] = identity.get("prior", "")
        ledger.finish(
            experiment.runs,
            identity,
            lambda folder: write_records(records, folder / RECORDS_NAME),
            {**facts, "fit_seconds": fit_seconds},
        )

    with progress_line(f"evaluate {label}", "runs") as progress:
        simulate(
            [run for of_key in runs.values() for run in of_key],
            experiment.iterations,
            repeats=bed.repeats,
            progress=progress,
            finished=_by_key({key: len(of_key) for key, of_key in runs.items()}, record),
        )


def _runs(bed: TestBed, arm: Arm, key: Key, learned: Any) -> tuple[list[Run], RunFailures]:
    """The runs on a fold's test tasks, and those on tasks for which the method has no usable policy."""
    held_out, seed = key
    runs, failures = [], {}
    for test_task in bed.folds[held_out].tests:
        try:
            policy = arm.method.policy(learned, test_task)
        except NumericalError as error:
            # Only this task is to blame: what was learned serves the others.
            failures |= {(test_task.name, run_seed): str(error) for run_seed in bed.run_seeds(seed)}
            continue
        beginnings = bed.beginnings.get(test_task.name, ((),))
        runs += [
            Run(policy, test_task, run_seed, rows)
            for run_seed, rows in zip(bed.run_seeds(seed), beginnings, strict=True)
        ]
    return runs, failures


def _by_key(
    counts: Mapping[Key, int], record: Callable[[Key, Simulation, Mapping[str, Any]], None]
) -> Callable[[Simulation], None]:
    """Takes finished runs in their order, and records each key when all of its runs are there.

    Args:
      counts: runs of each key, in the order of the runs.
      record: called with a key, its runs, and the facts of their time: keys that finish together share it.
    """
    waiting = list(counts)
    held: Simulation | None = None
    since = time.time()

    def finished(part: Simulation) -> None:
        nonlocal held, since
        held = part if held is None else Simulation.joined([held, part])
        ready: list[tuple[Key, Simulation]] = []
        while waiting and len(held.choices) >= counts[waiting[0]]:
            key = waiting.pop(0)
            ready.append((key, held.rows(range(counts[key]))))
            held = held.rows(range(counts[key], len(held.choices)))
        if ready:
            facts = run_facts(since, shares=len(ready))
            since = time.time()
            for key, simulation in ready:
                record(key, simulation, facts)

    return finished
