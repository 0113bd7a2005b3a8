"""Study: a study of the paper as a flow; only what is missing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefect import flow

from flows import ledger
from flows.evaluate import evaluate
from flows.experiment import Experiment
from flows.identities import prior_identities, simulation_identities
from flows.pretrain import pretrain
from flows.progress import say
from flows.protocols import TestBed
from flows.provide import provide
from flows.studies import STUDIES, design, under_its_protocol, usable
from hyperbo.evaluation.findings import count
from hyperbo.methods import PretrainedMethod


@flow(name="study", flow_run_name="{name} {experiment.dataset}", validate_parameters=False)
def run_study(name: str, experiment: Experiment, command: str, *, chosen: bool) -> Path:
    """Do a study on a dataset version, after a line that says how much it is.

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
    provide(experiment)
    bed = experiment.test_bed()
    if not chosen:
        experiment = replace(experiment, arms=usable(experiment.arms, bed))
    experiment = design(STUDIES[name], experiment, bed)
    say(f"study {name}: {outlook(experiment, bed)}")
    return evaluate(experiment, command, pretrain(experiment))


def outlook(experiment: Experiment, bed: TestBed) -> str:
    """How much an experiment is, in a line: what several arms share counts once.

    Args:
      experiment: what is compared.
      bed: its data under its protocol.

    Raises:
      InvalidInputError: an arm leaves no training task.
    """
    arms = list(experiment.arms.values())
    pretrained = [arm for arm in arms if isinstance(arm.method, PretrainedMethod)]
    identities = {
        "prior": [prior_identities(experiment, bed, arm) for arm in pretrained],
        "simulation": [simulation_identities(experiment, bed, arm) for arm in arms],
    }
    parts = [count(len(arms), "arm")]
    for kind, of_arms in identities.items():
        different = {ledger.run_id(identity): identity for each in of_arms for identity in each.values()}
        present = len(different) - len(ledger.missing(experiment.runs, different))
        parts.append(f"{count(len(different), kind)}, of which {present} present")
    return "; ".join(parts)
