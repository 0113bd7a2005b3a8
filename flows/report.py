"""Report: the records of all runs joined to one evaluation."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import task
from prefect.cache_policies import NO_CACHE

from flows import evaluation_folder, ledger
from flows.environment import run_facts
from flows.evaluation_folder import RECORDS_NAME
from flows.identities import (
    PROTOCOL,
    Identities,
    evaluation_identity,
    prior_identities,
    running_code,
    simulation_identities,
)
from flows.progress import say
from flows.settings import Settings, configurations
from hyperbo.errors import NotAvailableError
from hyperbo.evaluation.records import read_records
from hyperbo.methods import PRETRAINED
from hyperbo.tuning_data import TuningData
from pd1_builder import load


@task(persist_result=False, cache_policy=NO_CACHE)
def write_evaluation(settings: Settings, command: str) -> Path:
    """Join the records of all runs and write them with metadata and report, where that is not done.

    Args:
      settings: of the main job.
      command: what to type to run it again.

    Returns:
      The folder of the evaluation.

    Raises:
      NotAvailableError: a run is not in the ledger.
      HyperBOError: as `hyperbo.evaluation.report.write_report`.
    """
    data = load(settings.dataset, settings.preparation, data_dir=settings.data_dir)
    identity = evaluation_identity(settings, data)
    folder = ledger.run_folder(settings.runs, identity)
    if ledger.find(settings.runs, identity) is not None:
        say("report: present, nothing to do")
        return folder
    started = time.time()
    simulations = {
        method: _finished(settings, simulation_identities(settings, data, method))
        for method in settings.methods
    }
    priors = {
        method: _finished(settings, prior_identities(settings, data, method))
        for method in settings.methods
        if method in PRETRAINED
    }
    records = pd.concat(
        [read_records(each / RECORDS_NAME) for folders in simulations.values() for each in folders],
        ignore_index=True,
    )
    metadata = _metadata(settings, data, command, priors, simulations)

    ledger.finish(
        settings.runs,
        identity,
        lambda folder: evaluation_folder.write(folder, records, metadata),
        run_facts(started),
    )
    say(f"report: written in {time.time() - started:.0f} s")
    return folder


def _finished(settings: Settings, identities: Identities) -> list[Path]:
    folders = []
    for (held_out, seed), identity in identities.items():
        folder = ledger.find(settings.runs, identity)
        if folder is None:
            raise NotAvailableError(
                f"the {identity['kind']} of {identity['method']} on {held_out} with seed {seed} is not in "
                f"{settings.runs}; run the whole job"
            )
        folders.append(folder)
    return folders


def _metadata(
    settings: Settings,
    data: TuningData,
    command: str,
    priors: dict[str, list[Path]],
    simulations: dict[str, list[Path]],
) -> dict[str, Any]:
    """What the records came from: costs, times and platforms are those of the runs, whenever they ran."""
    steps = {"pre-train": priors, "evaluate": simulations}
    facts = {
        step: {method: [ledger.facts(each) for each in folders] for method, folders in by_method.items()}
        for step, by_method in steps.items()
    }
    every = [fact for by_method in facts.values() for of_method in by_method.values() for fact in of_method]
    return {
        **asdict(data.provenance),
        "protocol": PROTOCOL,
        "code_version": running_code(),
        "methods": {name: asdict(configuration) for name, configuration in configurations(settings).items()},
        "tasks": [each.name for each in data.tasks],
        "seeds": list(settings.seeds),
        "iterations": settings.iterations,
        "platform": {
            name: "; ".join(sorted({fact["platform"][name] for fact in every}))
            for name in every[0]["platform"]
        },
        "seconds": {
            step: {
                method: sum(fact["seconds"] for fact in of_method) for method, of_method in by_method.items()
            }
            for step, by_method in facts.items()
        },
        "started": min(fact["started"] for fact in every),
        "finished": max(fact["finished"] for fact in every),
        "run_ids": [
            each.name for by_method in steps.values() for folders in by_method.values() for each in folders
        ],
        "command": command,
    }
