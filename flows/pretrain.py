"""Pre-train: the priors that the ledger lacks, all of a method at once."""

from __future__ import annotations

import time
from dataclasses import asdict

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import ledger
from flows.environment import run_facts
from flows.identities import prior_identities
from flows.progress import progress_line, say
from flows.settings import Settings, configurations
from hyperbo.methods import HEKL, HNLL, PRETRAINED
from hyperbo.pretrain import Job, Pretrained
from hyperbo.prior import Prior, PriorDescription, save_prior
from pd1_builder import load
from pd1_builder.catalog import find
from pd1_builder.manifest import read_manifest


@flow(name="pretrain", flow_run_name="{settings.dataset}", validate_parameters=False)
def pretrain(settings: Settings) -> None:
    """Pre-train what is missing, for every method with a prior: one prior per dataset held out and seed.

    Raises:
      HyperBOError: as `pretrain_method`.
    """
    for method in settings.methods:
        if method in PRETRAINED:
            pretrain_method(settings, method)


@task(task_run_name="pretrain {method}", persist_result=False, cache_policy=NO_CACHE)
def pretrain_method(settings: Settings, method: str) -> None:
    """Pre-train a method's missing priors as one batch and record them in the ledger.

    Raises:
      HyperBOError: as `pd1_builder.load` and the method's `pretrain`.
    """
    data = load(settings.dataset, settings.preparation, data_dir=settings.data_dir)
    identities = prior_identities(settings, data, method)
    missing = ledger.missing(settings.runs, identities)
    present = len(identities) - len(missing)
    if not missing:
        say(f"pretrain {method}: {present} priors present, nothing to do")
        return
    configuration = configurations(settings)[method]
    assert isinstance(configuration, HNLL | HEKL)
    training = {held_out: data.hold_out(held_out) for held_out, _ in missing}
    jobs = [Job(training[held_out], seed) for held_out, seed in missing]
    started = time.time()
    with progress_line(f"pretrain {method}", "steps") as progress:
        results = configuration.pretrain(jobs, progress)
    facts = run_facts(started, shares=len(jobs))
    warping = _warping(settings)
    for key, job, result in zip(missing, jobs, results, strict=True):
        prior = _prior(method, configuration, job, key[0], warping, result, identities[key]["code_version"])
        ledger.finish(
            settings.runs, identities[key], lambda folder, prior=prior: save_prior(folder, prior), facts
        )
    seconds = time.time() - started
    say(f"pretrain {method}: {len(missing)} priors trained in {seconds:.0f} s, {present} were present")


def _warping(settings: Settings) -> str:
    version = find(settings.dataset, settings.data_dir)
    return str(read_manifest(version.folder).parameters["warping"])


def _prior(
    method: str,
    configuration: HNLL | HEKL,
    job: Job,
    held_out: str,
    warping: str,
    result: Pretrained,
    code_version: str,
) -> Prior:
    data = job.training
    description = PriorDescription(
        method=method,
        search_space=data.search_space,
        output_warping=warping,
        architecture=configuration.architecture,
        training=asdict(configuration.training),
        dataset=data.provenance.dataset,
        manifest_hash=data.provenance.manifest_hash,
        preparation=data.provenance.preparation,
        training_tasks=tuple(task.name for task in data.tasks),
        held_out=held_out,
        seed=job.seed,
        losses=tuple(result.losses.tolist()),
        largest_jitter=result.largest_jitter,
        seconds=result.seconds,
        code_version=code_version,
    )
    return Prior(result.gp, description)
