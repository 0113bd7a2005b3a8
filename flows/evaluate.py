"""Evaluate: the runs of Bayesian optimization that the ledger lacks, then records, metadata and report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import ledger
from flows.experiment import Arm, Experiment
from flows.failures import isolate, tell_single_runs
from flows.identities import (
    Failures,
    Key,
    RunFailures,
    all_failed,
    prior_identities,
    simulation_identities,
)
from flows.progress import say
from flows.protocols import TestBed
from flows.report import write_evaluation
from flows.simulations import learned, simulate_and_record
from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.findings import count
from hyperbo.methods import PretrainedMethod


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
        fitted, failed = learned(bed, arm, keys, priors, label)
        seconds = (time.time() - begun) / len(keys)
        if fitted:
            simulate_and_record(experiment, bed, arm, label, fitted, identities, seconds, partly)
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
