"""Study: a study of the paper as a flow; only what is missing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefect import flow

from flows.evaluate import evaluate
from flows.experiment import Experiment
from flows.pretrain import pretrain
from flows.refresh import refresh
from flows.studies import STUDIES, design, under_its_protocol, usable


@flow(name="study", flow_run_name="{name} {experiment.dataset}", validate_parameters=False)
def run_study(name: str, experiment: Experiment, command: str, *, chosen: bool) -> Path:
    """Do a study on a dataset version.

    Args:
      name: one of `flows.studies.STUDIES`.
      experiment: on what, and where; its arms are the methods that the study varies.
      command: what to type to run it again.
      chosen: whether the methods were asked for; if not, those that need matched inputs are left out where
        there are none.

    Returns:
      The folder of the evaluation, with the table and the figure of the study.

    Raises:
      HyperBOError: as `flows.studies.design` and the steps.
    """
    experiment = under_its_protocol(STUDIES[name], experiment)
    refresh(experiment)
    bed = experiment.test_bed()
    if not chosen:
        experiment = replace(experiment, arms=usable(experiment.arms, bed))
    experiment = design(STUDIES[name], experiment, bed)
    return evaluate(experiment, command, pretrain(experiment))
