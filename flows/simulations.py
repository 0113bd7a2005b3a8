"""Simulations: Bayesian optimization with what a method learned, recorded run by run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows import ledger
from flows.artifacts import shown_progress
from flows.environment import run_facts
from flows.evaluation_folder import RECORDS_NAME
from flows.experiment import Arm, Experiment
from flows.identities import Identities, Key, RunFailures, partial_identity
from flows.methods import method_name
from flows.protocols import TestBed
from hyperbo.errors import NumericalError
from hyperbo.evaluation.records import write_records
from hyperbo.methods import PretrainedMethod, prior_in_use
from hyperbo.pretrain import Job, outcomes_of
from hyperbo.prior import load_prior
from hyperbo.run_records import run_records
from hyperbo.simulate import Run, Simulation, simulate


def learned(
    bed: TestBed, arm: Arm, keys: Sequence[Key], priors: Mapping[Key, Path], label: str
) -> tuple[dict[Key, Any], dict[Key, Exception]]:
    """What the method learned for each run, read where it is a prior, else learned now; and what failed.

    Args:
      bed: the data under its protocol.
      arm: the method, and what it may learn from.
      keys: the runs.
      priors: their folders, of a method that pre-trains.
      label: of the arm.

    Raises:
      HyperBOError: as `hyperbo.prior.load_prior`, or of the method where it failed as a whole.
    """
    method = arm.method
    if isinstance(method, PretrainedMethod):
        found = ((key, load_prior(priors[key])) for key in keys)
        return {
            key: prior_in_use(prior.gp, len(prior.description.training_tasks)) for key, prior in found
        }, {}
    jobs = [Job(arm.training(bed.folds[held_out], seed), seed) for held_out, seed in keys]
    with shown_progress(f"fit {label}", "steps") as progress:
        outcomes = dict(zip(keys, outcomes_of(lambda: method.fit(jobs, progress)), strict=True))
    failed: dict[Key, Exception] = {
        key: outcome for key, outcome in outcomes.items() if isinstance(outcome, NumericalError)
    }
    return {key: outcome for key, outcome in outcomes.items() if key not in failed}, failed


def simulate_and_record(
    experiment: Experiment,
    bed: TestBed,
    arm: Arm,
    label: str,
    fitted: Mapping[Key, Any],
    identities: Identities,
    fit_seconds: float,
    partly: dict[Key, RunFailures],
) -> None:
    """Simulate, and record each simulation in the ledger as soon as it is finished.

    Args:
      experiment: what is compared.
      bed: its data under its protocol.
      arm: the method.
      label: of the arm.
      fitted: what the method learned for each run.
      identities: of the simulations in the ledger.
      fit_seconds: what learning took, for each.
      partly: gets what failed of each simulation that is not whole.

    Raises:
      HyperBOError: as `hyperbo.simulate.simulate`.
    """
    both = {key: _runs(bed, arm, key, of_key) for key, of_key in fitted.items()}
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

    with shown_progress(f"evaluate {label}", "runs") as progress:
        simulate(
            [run for of_key in runs.values() for run in of_key],
            experiment.iterations,
            repeats=bed.repeats,
            progress=progress,
            finished=_by_key({key: len(of_key) for key, of_key in runs.items()}, record),
        )


def _runs(bed: TestBed, arm: Arm, key: Key, fitted: Any) -> tuple[list[Run], RunFailures]:
    """The runs on a fold's test tasks, and those on tasks for which the method has no usable policy."""
    held_out, seed = key
    runs, failures = [], {}
    for test_task in bed.folds[held_out].tests:
        try:
            policy = arm.method.policy(fitted, test_task)
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
