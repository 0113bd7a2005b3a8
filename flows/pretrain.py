"""Pre-train: the priors that the ledger lacks, all of an arm at once."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import ledger
from flows.artifacts import shown_progress
from flows.checkpoints import checkpoints_of, pretrain_from_checkpoint
from flows.environment import run_facts
from flows.experiment import Arm, Experiment
from flows.failures import isolate
from flows.identities import Failures, Identities, Key, RunFailures, all_failed, prior_identities
from flows.methods import method_name
from flows.progress import say
from flows.protocols import TestBed, of_everything
from hyperbo.errors import NotAvailableError, NumericalError
from hyperbo.evaluation.findings import count
from hyperbo.files import write_atomically
from hyperbo.methods import PretrainedMethod
from hyperbo.pretrain import Job, Pretrained, outcomes_of
from hyperbo.prior import Prior, PriorDescription, save_prior
from hyperbo.prior_losses import prior_losses
from hyperbo.tuning_data import Task, TuningData
from pd1_builder.catalog import find
from pd1_builder.manifest import read_manifest

# Beside a prior: its losses on training tasks and on all others.
LOSSES_OF_PRIOR = "losses.parquet"


@flow(name="pretrain", flow_run_name="{experiment.dataset}", validate_parameters=False)
def pretrain(experiment: Experiment) -> Failures:
    """Pre-train what is missing, for every arm with a prior: one prior per fold and seed.

    Returns:
      The runs whose priors could not be trained, and why.

    Raises:
      HyperBOError: as `pretrain_arm`.
    """
    failures: dict[tuple[str, Key], RunFailures] = {}
    for label, arm in experiment.arms.items():
        if isinstance(arm.method, PretrainedMethod):
            failures |= pretrain_arm(experiment, label)
    return failures


@task(task_run_name="pretrain {label}", persist_result=False, cache_policy=NO_CACHE)
def pretrain_arm(experiment: Experiment, label: str, *, everything: bool = False) -> Failures:
    """Pre-train an arm's missing priors as one batch and record them in the ledger.

    A batch that was killed goes on from its last checkpoint.

    Args:
      experiment: what is compared.
      label: of the arm.
      everything: whether nothing is held out: the priors are for use, not for tests.

    Returns:
      The runs whose priors could not be trained, and why.

    Raises:
      HyperBOError: as `Experiment.test_bed`.
    """
    arm = experiment.arms[label]
    tested = of_everything(experiment.test_bed()) if everything else experiment.test_bed()
    identities, bed = prior_identities(experiment, tested, arm), experiment.training_bed(arm, tested)
    what = f"pretrain {label}" + (", nothing held out" if everything else "")
    missing = ledger.missing(experiment.runs, identities)
    if not missing:
        say(f"{what}: {count(len(identities), 'prior')} present, nothing to do")
        return {}
    started = time.time()

    def work(keys: Sequence[Key]) -> dict[Key, Exception]:
        batch = [identities[key] for key in keys]
        with checkpoints_of(experiment.runs, batch, what) as checkpoints:
            # Another process may have recorded them while this one waited.
            left = [key for key in keys if ledger.find(experiment.runs, identities[key]) is None]
            return _pretrain(experiment, bed, arm, left, identities, checkpoints, what) if left else {}

    failed = isolate(
        what, missing, work, lambda key: ledger.find(experiment.runs, identities[key]) is not None
    )
    seconds, present = time.time() - started, len(identities) - len(missing)
    trained = count(len(missing) - len(failed), "prior")
    say(
        f"{what}: {trained} trained in {seconds:.0f} s, {present} were present"
        + (f", {len(failed)} failed" if failed else "")
    )
    return {(label, key): all_failed(bed, key, reason) for key, reason in failed.items()}


def find_prior_for_use(experiment: Experiment, label: str) -> Path:
    """The folder of an arm's prior with nothing held out, trained with the first seed.

    Raises:
      NotAvailableError: it is not in the ledger.
      HyperBOError: as `Experiment.test_bed`.
    """
    bed = of_everything(experiment.test_bed())
    identity = prior_identities(experiment, bed, experiment.arms[label])["", experiment.seeds[0]]
    folder = ledger.find(experiment.runs, identity)
    if folder is None:
        raise NotAvailableError(
            f"no prior of {label} trained on all of {experiment.dataset} is in {experiment.runs}; run the "
            "pretrain flow first"
        )
    return folder


def _pretrain(
    experiment: Experiment,
    bed: TestBed,
    arm: Arm,
    keys: Sequence[Key],
    identities: Identities,
    checkpoints: Path,
    what: str,
) -> dict[Key, Exception]:
    """Pre-train, and record the priors that are usable; returns why the others are not."""
    method = arm.method
    assert isinstance(method, PretrainedMethod)
    jobs = [Job(training, key[1]) for key, training in zip(keys, _training(bed, arm, keys), strict=True)]
    started = time.time()
    with shown_progress(what, "steps") as progress:
        outcomes = outcomes_of(lambda: pretrain_from_checkpoint(method, jobs, progress, checkpoints, what))
    facts = run_facts(started, shares=len(jobs))
    failed: dict[Key, Exception] = {}
    trained: list[tuple[Key, Job, Pretrained]] = []
    for key, job, outcome in zip(keys, jobs, outcomes, strict=True):
        if isinstance(outcome, NumericalError):
            failed[key] = outcome
        else:
            trained.append((key, job, outcome))
    if trained:
        _record(experiment, bed, method, trained, identities, facts)
    return failed


def _record(
    experiment: Experiment,
    bed: TestBed,
    method: PretrainedMethod,
    trained: Sequence[tuple[Key, Job, Pretrained]],
    identities: Identities,
    facts: Mapping[str, Any],
) -> None:
    losses = prior_losses(
        bed.data,
        [
            (result.gp, bed.folds[held_out], [each.name for each in job.training.tasks])
            for (held_out, _), job, result in trained
        ],
    )
    warping = _warping(experiment)
    for (key, job, result), of_prior in zip(trained, losses, strict=True):
        prior = Prior(result.gp, _description(method, job, key[0], warping, result, identities[key]))

        def write(folder: Path, prior: Prior = prior, of_prior: pd.DataFrame = of_prior) -> None:
            save_prior(folder, prior)
            buffer = io.BytesIO()
            of_prior.to_parquet(buffer, engine="pyarrow", index=False)
            write_atomically(folder / LOSSES_OF_PRIOR, buffer.getvalue())

        ledger.finish(experiment.runs, identities[key], write, facts)


def _training(bed: TestBed, arm: Arm, keys: Sequence[Key]) -> list[TuningData]:
    """The training data of every run; tasks that are equal are one object: a batch has each once."""
    of_tasks: dict[tuple[str, int], Task] = {}
    of_folds: dict[Key, TuningData] = {}
    draws = arm.points_per_task is not None or arm.training_tasks is not None
    drawn = [(held_out, seed if draws else 0) for held_out, seed in keys]
    for held_out, seed in dict.fromkeys(drawn):
        data = arm.training(bed.folds[held_out], seed)
        # Of a seed, the points kept of a task are the same in every fold.
        tasks = tuple(of_tasks.setdefault((each.name, seed), each) for each in data.tasks)
        of_folds[held_out, seed] = replace(data, tasks=tasks)
    return [of_folds[key] for key in drawn]


def _warping(experiment: Experiment) -> str:
    version = find(experiment.dataset, experiment.data_dir)
    return str(read_manifest(version.folder).parameters["warping"])


def _description(
    method: Any, job: Job, held_out: str, warping: str, result: Pretrained, identity: ledger.Identity
) -> PriorDescription:
    data = job.training
    return PriorDescription(
        method=method_name(method),
        search_space=data.search_space,
        output_warping=warping,
        architecture=method.architecture,
        training=asdict(method.training),
        dataset=data.provenance.dataset,
        manifest_hash=data.provenance.manifest_hash,
        preparation=data.provenance.preparation,
        training_tasks=tuple(each.name for each in data.tasks),
        held_out=held_out,
        seed=job.seed,
        losses=tuple(result.losses.tolist()),
        largest_jitter=result.largest_jitter,
        seconds=result.seconds,
        code_version=identity["code_version"],
    )
