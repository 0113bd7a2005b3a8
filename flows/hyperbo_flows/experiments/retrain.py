"""Whole chains: from raw trials to the report of an experiment, or of a study of the paper."""

from __future__ import annotations

import time
from pathlib import Path

from hyperbo_flows.experiments.evaluate import evaluate
from hyperbo_flows.experiments.experiment import Experiment
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import pretrain
from hyperbo_flows.experiments.studies import STUDIES, design, under_its_protocol, usable
from hyperbo_flows.process.progress import say
from pd1_builder import Manifest, build, verify
from pd1_builder.read.preparations import find_preparation
from pd1_builder.version.catalog import version_folder
from pd1_builder.version.makeable import DATASETS, can_be_made


def retrain(experiment: Experiment, command: str) -> Path:
    """Provide the dataset version, pre-train, evaluate and report. Only what is missing is done.

    A run that fails is reported as missing, with its reason; the others go on.

    Args:
      experiment: what is compared.
      command: what to type to run it again.

    Returns:
      The folder of the evaluation.

    Raises:
      HyperBOError: the version cannot be provided, or every run failed.
    """
    provide(experiment)
    plan = make_plan(experiment)
    return evaluate(plan, command, pretrain(plan))


def run_study(experiment: Experiment, command: str, name: str, *, chosen: bool) -> Path:
    """Do a study on a dataset version, after a line that says how much there is to do.

    Args:
      experiment: on what, and where; its arms are the methods that the study varies.
      command: what to type to run it again.
      name: one of `hyperbo_flows.experiments.studies.STUDIES`.
      chosen: whether the user named the methods. If not, methods that need matched inputs are left out where
        there are none.

    Returns:
      The folder of the evaluation, with the table and the figure of the study.

    Raises:
      InvalidInputError: a method lacks what the study varies, or the data leave nothing to vary.
      HyperBOError: the version cannot be provided, or every run failed.
    """
    study = STUDIES[name]
    experiment = under_its_protocol(study, experiment)
    provide(experiment)
    plan = make_plan(experiment)
    arms = experiment.arms if chosen else usable(experiment.arms, plan.test_bed)
    plan = plan.with_arms(design(study, arms, plan.test_bed))
    say(f"study {name}: {plan.outlook()}")
    return evaluate(plan, command, pretrain(plan))


def provide(experiment: Experiment) -> Manifest:
    """Build the dataset version where it is missing, and verify it where it is there.

    A version of the user's own trials or runs can only be verified.

    Raises:
      NotAvailableError: the version is not there and cannot be built.
      VersionConflictError: the version is damaged, or was made from other raw files.
      HyperBOError: the build failed.
    """
    dataset, _, version = experiment.dataset.partition(":")
    present = version_folder(dataset, version, experiment.data_dir).exists()
    buildable = dataset in DATASETS and (experiment.raw is not None or can_be_made(dataset, version))
    find_preparation(experiment.preparation, dataset)  # Refuses an unknown one before anything is built.
    if buildable and not present:
        say(f"dataset {experiment.dataset}: building")
    started = time.perf_counter()
    if buildable or (present and dataset in DATASETS):
        # A version that is there is verified by the build, and its raw files compared with those at hand.
        manifest = build(dataset, version, raw=experiment.raw, data_dir=experiment.data_dir)
    else:
        manifest = verify(experiment.dataset, experiment.data_dir)
    done = "present, verified" if present else f"built in {time.perf_counter() - started:.0f} s"
    trials = sum(manifest.rows(split) for split in manifest.counts)
    tasks = len({task for counts in manifest.counts.values() for task in counts})
    say(
        f"dataset {manifest.reference}: {done}, in {experiment.data_dir}, {trials} trials of {tasks} tasks, "
        f"content {manifest.content_hash[:12]}"
    )
    return manifest
