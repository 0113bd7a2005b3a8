"""Pre-train: the priors that the ledger lacks, all of an arm as one batch that goes on after a kill."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from hyperbo.compute.checkpoints import CheckpointFolder, checkpoints_available
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError, NotAvailableError, NumericalError, VersionConflictError
from hyperbo.methods import PretrainedMethod
from hyperbo.pretrain import Job, Pretrained, Progress, outcomes_of
from hyperbo.priors.file import Prior, save_prior, trained_prior
from hyperbo.priors.losses import prior_losses
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.printable import count
from hyperbo.storage.staging import lock
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.methods import method_name
from hyperbo_flows.experiments.plan import Plan, PlannedArm
from hyperbo_flows.experiments.work import (
    IN_ORDER,
    Failures,
    Key,
    Part,
    Runner,
    ShowProgress,
    all_failed,
    isolate,
)
from hyperbo_flows.process.environment import run_facts
from hyperbo_flows.process.progress import say

# Beside a prior: its losses on training tasks and on all others.
LOSSES_OF_PRIOR = "losses.parquet"
_CHECKPOINTS = "checkpoints"


def pretrain(plan: Plan, runner: Runner = IN_ORDER) -> Failures:
    """Pre-train what is missing, for every arm with a prior: one prior per fold and seed.

    Args:
      plan: what is compared, on which data.
      runner: how the arms are run, each as a whole.

    Returns:
      The runs whose priors could not be trained, and why.

    Raises:
      InvalidInputError: an arm leaves no training task.
      OSError: files cannot be written or read.
    """
    parts = [part for part in plan.parts(by_fold=False) if plan.arms[part.label].priors]
    return runner.failures(partial(_pretrain_arm, plan, runner.progress), parts)


def _pretrain_arm(plan: Plan, progress: ShowProgress, part: Part) -> Failures:
    """Pre-train an arm's missing priors as one batch, which goes on from its last checkpoint after a kill."""
    arm, runs = plan.arms[part.label], plan.experiment.runs
    what = f"pretrain {part}" + (", nothing held out" if plan.for_use else "")
    missing = ledger.missing(runs, arm.priors)
    if not missing:
        say(f"{what}: {count(len(arm.priors), 'prior')} present, nothing to do")
        return {}
    started = time.time()

    def work(keys: Sequence[Key]) -> dict[Key, Exception]:
        with checkpoints_of(runs, [arm.priors[key] for key in keys], what) as checkpoints:
            # Another process may have recorded them while this one waited.
            left = [key for key in keys if ledger.find(runs, arm.priors[key]) is None]
            return _pretrain(arm, plan.warping, left, progress, checkpoints, what) if left else {}

    failed = isolate(what, missing, work, lambda key: ledger.find(runs, arm.priors[key]) is not None)
    seconds, present = time.time() - started, len(arm.priors) - len(missing)
    trained = count(len(missing) - len(failed), "prior")
    say(
        f"{what}: {trained} trained in {seconds:.0f} s, {present} were present"
        + (f", {len(failed)} failed" if failed else "")
    )
    return {(part.label, key): all_failed(plan.test_bed, key, reason) for key, reason in failed.items()}


def find_prior_for_use(plan: Plan, label: str) -> Path:
    """The folder of an arm's prior that is trained with nothing held out, from the first seed.

    Raises:
      NotAvailableError: the prior is not in the ledger.
    """
    (identity,) = plan.of_prior_for_use(label).arms[label].priors.values()
    dataset, runs = plan.experiment.dataset, plan.experiment.runs
    folder = ledger.find(runs, identity)
    if folder is None:
        raise NotAvailableError(
            f"no prior of {label} trained on all of {dataset} is in {runs}; run the pretrain flow first"
        )
    return folder


def _pretrain(
    arm: PlannedArm, warping: str, keys: Sequence[Key], progress: ShowProgress, checkpoints: Path, what: str
) -> dict[Key, Exception]:
    """Pre-train, record the priors that are usable, and return why the others are not."""
    method = arm.method
    assert isinstance(method, PretrainedMethod)
    jobs = [Job(data, seed) for (_, seed), data in zip(keys, _training_data(arm, keys), strict=True)]
    started = time.time()
    with progress(what, "steps") as report:
        outcomes = outcomes_of(lambda: _pretrain_from_checkpoint(method, jobs, report, checkpoints, what))
    facts = run_facts(started, shares=len(jobs))
    failed: dict[Key, Exception] = {}
    trained: list[tuple[Key, Job, Pretrained]] = []
    for key, job, outcome in zip(keys, jobs, outcomes, strict=True):
        if isinstance(outcome, NumericalError):
            failed[key] = outcome
        else:
            trained.append((key, job, outcome))
    if trained:
        _record(arm, warping, trained, facts)
    return failed


def _record(
    arm: PlannedArm, warping: str, trained: Sequence[tuple[Key, Job, Pretrained]], facts: Mapping[str, Any]
) -> None:
    method, bed = arm.method, arm.training_bed
    assert isinstance(method, PretrainedMethod)
    losses_of_priors = prior_losses(
        bed.data,
        [
            (result.gp, bed.folds[held_out], [each.name for each in job.training.tasks])
            for (held_out, _), job, result in trained
        ],
    )
    for (key, job, result), losses in zip(trained, losses_of_priors, strict=True):
        identity = arm.priors[key]
        prior = trained_prior(
            result,
            job,
            method_name(method.trained_as),
            method.architecture,
            method.training,
            held_out=key[0],
            output_warping=warping,
            code_version=identity["code_version"],
        )

        def write(folder: Path, prior: Prior = prior, losses: pd.DataFrame = losses) -> None:
            save_prior(folder, prior)
            write_atomically(folder / LOSSES_OF_PRIOR, losses.to_parquet(engine="pyarrow", index=False))

        ledger.finish(arm.experiment.runs, identity, write, facts)


def _training_data(arm: PlannedArm, keys: Sequence[Key]) -> list[TuningData]:
    """The training data of every run. Tasks that are equal are one object: a batch has each once."""
    tasks: dict[tuple[str, int], Task] = {}
    drawn: dict[Key, TuningData] = {}
    draws = arm.arm.points_per_task is not None or arm.arm.training_tasks is not None
    # Where nothing is drawn, the data of a fold are the same for all seeds.
    sources = [(held_out, seed if draws else 0) for held_out, seed in keys]
    for held_out, seed in dict.fromkeys(sources):
        data = arm.training_data((held_out, seed))
        # For a seed, the points kept of a task are the same in every fold.
        kept = tuple(tasks.setdefault((each.name, seed), each) for each in data.tasks)
        drawn[held_out, seed] = replace(data, tasks=kept)
    return [drawn[source] for source in sources]


@contextmanager
def checkpoints_of(runs: Path, identities: Sequence[ledger.Identity], label: str) -> Iterator[Path]:
    """The folder for checkpoints of a batch of runs, held by this process alone; deleted after the batch.

    A process that finds another at the same batch waits: it may have nothing to do afterwards. After an
    error, as after a kill, the folder stays, and the next attempt goes on from it.

    Args:
      runs: the ledger's folder.
      identities: identities of the runs, in the order of the batch.
      label: the step, named in the line that says why nothing happens.
    """
    batch = {"kind": _CHECKPOINTS, "runs": [ledger.run_id(identity) for identity in identities]}
    folder = ledger.run_folder(runs, batch)
    with lock(folder / "calls", lambda: say(f"{label}: waiting for a process at the same batch")):
        yield folder / "calls"
        # Gone already where the process that was waited for has finished the batch.
        shutil.rmtree(folder, ignore_errors=True)


def _pretrain_from_checkpoint(
    method: PretrainedMethod, jobs: Sequence[Job], report: Progress, folder: Path, label: str
) -> list[Pretrained]:
    """Pre-train, from the newest checkpoint in the folder where there is one that fits.

    Where a checkpoint is of other devices or code, or cannot be read, the training starts again.
    """
    if not checkpoints_available():
        say(f"{label}: without checkpoints, since orbax-checkpoint is not installed")
        return method.pretrain(jobs, report)
    checkpoint = CheckpointFolder(folder, every_calls=1)
    try:
        return method.pretrain(jobs, report, checkpoint)
    except (VersionConflictError, InvalidInputError) as error:
        if not folder.exists():
            raise
        say(f"{label}: from the start, as the checkpoint cannot be used: {error}")
        shutil.rmtree(folder)
        return method.pretrain(jobs, report, checkpoint)
