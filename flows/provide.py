"""Provide: the dataset version of an experiment is there and is what its manifest says."""

from __future__ import annotations

import time

# While it is imported, no other thread can import anything; so it is, before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.experiment import Experiment
from flows.progress import say
from pd1_builder import Manifest, build, verify
from pd1_builder.catalog import version_folder
from pd1_builder.datasets import DATASETS


@flow(name="provide", flow_run_name="{experiment.dataset}", validate_parameters=False)
def provide(experiment: Experiment) -> Manifest:
    """Build the dataset version where it is missing, verify it where it is there.

    Raises:
      HyperBOError: as `pd1_builder.build`; also where the version was made from other raw files.
    """
    dataset, _, version = experiment.dataset.partition(":")
    present = version_folder(dataset, version, experiment.data_dir).exists()
    if not present and dataset in DATASETS:
        say(f"dataset {experiment.dataset}: building")
    started = time.perf_counter()
    # A version that is there is verified by the build, and its raw files compared with those at hand.
    manifest = build_version(experiment, dataset, version)
    done = "present, verified" if present else f"built in {time.perf_counter() - started:.0f} s"
    say(f"dataset {manifest.reference}: {done}, {_describe(manifest)}")
    return manifest


@task(persist_result=False, cache_policy=NO_CACHE)
def build_version(experiment: Experiment, dataset: str, version: str) -> Manifest:
    """Build the version, or verify it; one of the user's own trials or runs can only be verified."""
    if dataset not in DATASETS:
        return verify(experiment.dataset, experiment.data_dir)
    return build(dataset, version, raw=experiment.raw, data_dir=experiment.data_dir)


def _describe(manifest: Manifest) -> str:
    trials = sum(manifest.rows(split) for split in manifest.counts)
    tasks = len({task for counts in manifest.counts.values() for task in counts})
    return f"{trials} trials of {tasks} tasks, content {manifest.content_hash[:12]}"
