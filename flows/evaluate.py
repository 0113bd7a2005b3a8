"""Evaluate: the runs of Bayesian optimization that the ledger lacks, then records, metadata and report."""

from __future__ import annotations

import math
import time
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import ledger
from flows.environment import run_facts
from flows.evaluation_folder import RECORDS_NAME
from flows.identities import Key, prior_identities, simulation_identities
from flows.progress import progress_line, say
from flows.report import write_evaluation
from flows.settings import Settings, configurations
from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.records import write_records
from hyperbo.methods import STBO, GPPolicy, Rand
from hyperbo.methods.protocol import Policy
from hyperbo.prior import load_prior
from hyperbo.simulate import Run, run_records, simulate
from hyperbo.tuning_data import TuningData
from pd1_builder import load

_ITERATIONS_PER_CALL = 10


@flow(name="evaluate", flow_run_name="{settings.dataset}", validate_parameters=False)
def evaluate(settings: Settings, command: str) -> Path:
    """Run what is missing of every method, then join all records to an evaluation with its report.

    Args:
      settings: of the main job.
      command: what to type to run it again; written into the report.

    Returns:
      The folder of the evaluation: records, metadata, report.

    Raises:
      HyperBOError: as `simulate_method` and `write_evaluation`.
    """
    for method in settings.methods:
        simulate_method(settings, method)
    return write_evaluation(settings, command)


@task(task_run_name="evaluate {method}", persist_result=False, cache_policy=NO_CACHE)
def simulate_method(settings: Settings, method: str) -> None:
    """Run a method's missing runs as one batch and record them in the ledger.

    Raises:
      NotAvailableError: a prior that the runs need is not in the ledger.
      HyperBOError: as `pd1_builder.load` and `hyperbo.simulate.simulate`.
    """
    data = load(settings.dataset, settings.preparation, data_dir=settings.data_dir)
    identities = simulation_identities(settings, data, method)
    missing = ledger.missing(settings.runs, identities)
    present = len(identities) - len(missing)
    if not missing:
        say(f"evaluate {method}: {present} runs present, nothing to do")
        return
    runs: list[Run] = []
    run_keys: list[Key] = []
    for key in missing:
        policy = _policy(settings, data, method, key)
        for test_task in data.tasks:
            if test_task.dataset == key[0]:
                runs.append(Run(policy, test_task, key[1]))
                run_keys.append(key)
    started = time.time()
    with progress_line(f"evaluate {method}", "iterations") as progress:
        choices = simulate(
            runs,
            settings.iterations,
            iterations_per_call=math.gcd(settings.iterations, _ITERATIONS_PER_CALL),
            progress=progress,
        )
    facts = run_facts(started, shares=len(missing))
    for key in missing:
        rows = [row for row, run_key in enumerate(run_keys) if run_key == key]
        records = run_records(method, [runs[row] for row in rows], choices[rows])
        records["prior"] = identities[key].get("prior", "")
        ledger.finish(
            settings.runs,
            identities[key],
            lambda folder, records=records: write_records(records, folder / RECORDS_NAME),
            facts,
        )
    seconds = time.time() - started
    say(f"evaluate {method}: {len(missing)} runs in {seconds:.0f} s, {present} were present")


def _policy(settings: Settings, data: TuningData, method: str, key: Key) -> Policy:
    configuration = configurations(settings)[method]
    if isinstance(configuration, STBO | Rand):
        return configuration.policy(data.search_space.dimension, key[1])
    folder = ledger.find(settings.runs, prior_identities(settings, data, method)[key])
    if folder is None:
        raise NotAvailableError(
            f"no prior of {method} with {key[0]} held out and seed {key[1]} is in {settings.runs}; "
            "run the pretrain flow first"
        )
    return GPPolicy(load_prior(folder).gp)
