"""Evaluate: the simulations that the ledger lacks, then records, metadata and report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hyperbo.errors import NotAvailableError
from hyperbo.storage.printable import count
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.plan import Plan
from hyperbo_flows.experiments.simulations import simulate_and_record
from hyperbo_flows.experiments.work import (
    IN_ORDER,
    Failures,
    Key,
    Part,
    RunFailures,
    Runner,
    ShowProgress,
    all_failed,
    isolate,
    tell_single_runs,
)
from hyperbo_flows.experiments.write_evaluation import write_evaluation
from hyperbo_flows.process.progress import say


def evaluate(plan: Plan, command: str, failures: Failures, runner: Runner = IN_ORDER) -> Path:
    """Run what is missing of every arm, then join all records to an evaluation with its report.

    Args:
      plan: what is compared, on which data.
      command: what to type to run it again; written into the report.
      failures: runs whose priors could not be trained, and why.
      runner: how the parts are run.

    Returns:
      The folder of the evaluation: records, metadata, report.

    Raises:
      NotAvailableError: a prior that the runs need is not in the ledger.
      NumericalError: every run failed.
      OSError: files cannot be written or read.
    """
    return write_evaluation(plan, command, {**failures, **simulate(plan, failures, runner)})


def simulate(plan: Plan, failures: Failures, runner: Runner = IN_ORDER) -> Failures:
    """Simulate what is missing of every arm.

    Args:
      plan: what is compared, on which data.
      failures: runs that are not to be tried, since their priors could not be trained.
      runner: how the parts are run.

    Returns:
      The runs that failed here, and why.

    Raises:
      NotAvailableError: a prior that the runs need is not in the ledger.
      OSError: files cannot be written or read.
    """
    work = partial(_simulate_part, plan, failures, runner.progress)
    return runner.failures(work, plan.parts(runner.by_fold))


def _simulate_part(plan: Plan, failures: Failures, progress: ShowProgress, part: Part) -> Failures:
    """Simulate an arm's missing runs, record each as soon as it is finished, and return those that failed.

    Where single runs of Bayesian optimization fail, the others are recorded as a part
    (`hyperbo_flows.experiments.work.partial_identity`); a later start simulates the whole again.
    """
    arm, runs = plan.arms[part.label], plan.experiment.runs
    identities = {
        key: identity for key, identity in arm.simulations.items() if part.held_out in (None, key[0])
    }
    unrecorded = ledger.missing(runs, identities)
    present = len(identities) - len(unrecorded)
    missing = [key for key in unrecorded if (part.label, key) not in failures]
    what = f"evaluate {part}"
    if not missing:
        say(f"{what}: {count(present, 'simulation')} present, nothing to do")
        return {}
    for key in missing:
        if arm.priors and ledger.find(runs, arm.priors[key]) is None:
            raise NotAvailableError(
                f"no prior of {part.label} with {key[0]} held out and seed {key[1]} is in {runs}; run the "
                "pretrain flow first"
            )
    partly: dict[Key, RunFailures] = {}
    started = time.time()

    def work(keys: Sequence[Key]) -> dict[Key, Exception]:
        failed, of_single_runs = simulate_and_record(arm, part.label, keys, progress)
        partly.update(of_single_runs)
        return failed

    def done(key: Key) -> bool:
        return key in partly or ledger.find(runs, identities[key]) is not None

    wholly = isolate(what, missing, work, done)
    tell_single_runs(what, partly)
    failed = {key: all_failed(plan.test_bed, key, reason) for key, reason in wholly.items()} | partly
    seconds, recorded = time.time() - started, count(len(missing) - len(failed), "simulation")
    say(
        f"{what}: {recorded} in {seconds:.0f} s, {present} were present"
        + (f", {len(failed)} failed" if failed else "")
    )
    return {(part.label, key): run_failures for key, run_failures in failed.items()}


def untrained(plan: Plan) -> Failures:
    """The runs whose priors are not in the ledger, where other priors of their arm are.

    Raises:
      NotAvailableError: no prior of an arm is there.
    """
    failures: dict[tuple[str, Key], RunFailures] = {}
    for label, arm in plan.arms.items():
        missing = ledger.missing(plan.experiment.runs, arm.priors)
        if missing and len(missing) == len(arm.priors):
            raise NotAvailableError(
                f"no prior of {label} for {plan.experiment.dataset} is in {plan.experiment.runs}; run the "
                "pretrain flow first"
            )
        failures |= {
            (label, key): all_failed(plan.test_bed, key, "its prior is not there") for key in missing
        }
    return failures
