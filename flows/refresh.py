"""Refresh: the dataset version is there and is what its manifest says."""

from __future__ import annotations

import time

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.progress import say
from flows.settings import Settings
from pd1_builder import Manifest, build
from pd1_builder.catalog import version_folder


@flow(name="refresh", flow_run_name="{settings.dataset}", validate_parameters=False)
def refresh(settings: Settings) -> Manifest:
    """Build the dataset version where it is missing, verify it where it is there.

    Raises:
      HyperBOError: as `pd1_builder.build`; also where the version was made from other raw files.
    """
    dataset, _, version = settings.dataset.partition(":")
    present = version_folder(dataset, version, settings.data_dir).exists()
    if not present:
        say(f"dataset {settings.dataset}: building")
    started = time.perf_counter()
    # A version that is there is verified by the build, and its raw files compared with those at hand.
    manifest = build_version(settings, dataset, version)
    done = "present, verified" if present else f"built in {time.perf_counter() - started:.0f} s"
    say(f"dataset {manifest.reference}: {done}, {_describe(manifest)}")
    return manifest


@task(persist_result=False, cache_policy=NO_CACHE)
def build_version(settings: Settings, dataset: str, version: str) -> Manifest:
    """Build the version, or verify it."""
    return build(dataset, version, raw=settings.raw, data_dir=settings.data_dir)


def _describe(manifest: Manifest) -> str:
    trials = sum(manifest.rows(split) for split in manifest.counts)
    tasks = len({task for counts in manifest.counts.values() for task in counts})
    return f"{trials} trials of {tasks} tasks, content {manifest.content_hash[:12]}"
