"""Simulations: Bayesian optimization with what a method learned, each recorded as soon as it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hyperbo.bayesopt.offline import Run, Simulation, run_records, simulate
from hyperbo.errors import NumericalError
from hyperbo.evaluation.records.runs import write_records
from hyperbo.methods import PretrainedMethod
from hyperbo.pretrain import Job, outcomes_of
from hyperbo.priors.file import read_prior
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.evaluation_folder import RECORDS_NAME
from hyperbo_flows.experiments.methods import method_name
from hyperbo_flows.experiments.plan import PlannedArm
from hyperbo_flows.experiments.work import Key, RunFailures, ShowProgress, partial_identity
from hyperbo_flows.process.environment import run_facts


def simulate_and_record(
    arm: PlannedArm, label: str, keys: Sequence[Key], progress: ShowProgress
) -> tuple[dict[Key, Exception], dict[Key, RunFailures]]:
    """Simulate, and record each simulation in the ledger as soon as it is finished.

    Args:
      arm: the arm; where its method pre-trains, its priors are in the ledger.
      label: label of the arm, for people.
      keys: the simulations.
      progress: shows how far the work is.

    Returns:
      The simulations for which the method learned nothing of use, and why; and of each of the others that is
      not whole, the runs that failed.

    Raises:
      HyperBOError: the method cannot learn from the data at all, or a prior cannot be read.
    """
    begun = time.time()
    learned, failed = _learned(arm, label, keys, progress)
    fit_seconds = (time.time() - begun) / len(keys)
    prepared = {key: _runs(arm, key, fitted) for key, fitted in learned.items()}
    partly = {key: unprepared for key, (runs, unprepared) in prepared.items() if not runs}
    runs_of = {key: runs for key, (runs, _) in prepared.items() if runs}
    if not runs_of:
        return failed, partly

    def record(key: Key, simulation: Simulation, facts: Mapping[str, Any]) -> None:
        runs, unprepared = prepared[key]
        identity = arm.simulations[key]
        failures = dict(unprepared) | {
            (run.task.name, run.seed): reason
            for run, reason in zip(runs, simulation.failures, strict=True)
            if reason is not None
        }
        usable = [row for row, reason in enumerate(simulation.failures) if reason is None]
        if failures:
            partly[key] = failures
            identity = partial_identity(identity, failures)
        if not usable:
            return
        records = run_records(method_name(arm.method), [runs[row] for row in usable], simulation.rows(usable))
        records["prior"] = identity.get("prior", "")
        ledger.finish(
            arm.experiment.runs,
            identity,
            lambda folder: write_records(records, folder / RECORDS_NAME),
            {**facts, "fit_seconds": fit_seconds},
        )

    with progress(f"evaluate {label}", "runs") as report:
        simulate(
            [run for runs in runs_of.values() for run in runs],
            arm.experiment.iterations,
            repeats=arm.test_bed.repeats,
            progress=report,
            finished=_by_key({key: len(runs) for key, runs in runs_of.items()}, record),
        )
    return failed, partly


def _learned(
    arm: PlannedArm, label: str, keys: Sequence[Key], progress: ShowProgress
) -> tuple[dict[Key, Any], dict[Key, Exception]]:
    """What the method learned for each simulation: a prior that is read, or learned now; and what failed."""
    method = arm.method
    if isinstance(method, PretrainedMethod):
        found = ((key, read_prior(ledger.run_folder(arm.experiment.runs, arm.priors[key]))) for key in keys)
        return {key: method.in_use(prior.gp, arm.training_data(key)) for key, prior in found}, {}
    jobs = [Job(arm.training_data(key), key[1]) for key in keys]
    with progress(f"fit {label}", "steps") as report:
        outcomes = dict(zip(keys, outcomes_of(lambda: method.fit(jobs, report)), strict=True))
    failed: dict[Key, Exception] = {
        key: outcome for key, outcome in outcomes.items() if isinstance(outcome, NumericalError)
    }
    return {key: outcome for key, outcome in outcomes.items() if key not in failed}, failed


def _runs(arm: PlannedArm, key: Key, fitted: Any) -> tuple[list[Run], RunFailures]:
    """The runs on a fold's test tasks; and those on tasks for which the method has no usable policy."""
    (held_out, seed), test_bed = key, arm.test_bed
    runs, failures = [], {}
    for test_task in test_bed.folds[held_out].tests:
        try:
            policy = arm.method.policy(fitted, test_task)
        except NumericalError as error:
            # Only this task is to blame: what was learned serves the others.
            failures |= {(test_task.name, run_seed): str(error) for run_seed in test_bed.run_seeds(seed)}
            continue
        beginnings = test_bed.beginnings.get(test_task.name, ((),))
        runs += [
            Run(policy, test_task, run_seed, rows)
            for run_seed, rows in zip(test_bed.run_seeds(seed), beginnings, strict=True)
        ]
    return runs, failures


def _by_key(
    counts: Mapping[Key, int], record: Callable[[Key, Simulation, Mapping[str, Any]], None]
) -> Callable[[Simulation], None]:
    """A callback that takes finished runs in their order, and records a key when all of its runs are there.

    Keys that finish together share the facts of their time.
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
