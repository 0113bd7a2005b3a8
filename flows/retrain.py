"""Retrain: the whole chain, from raw trials to a report."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from flows.evaluate import evaluate
from flows.experiment import Experiment
from flows.pretrain import pretrain
from flows.provide import provide


@flow(name="retrain", flow_run_name="{experiment.dataset}", validate_parameters=False)
def retrain(experiment: Experiment, command: str | None = None) -> Path:
    """Provide the dataset version, pre-train, evaluate and report; only what is missing is done.

    A run that fails is reported as missing, with its reason; the others go on.

    Args:
      experiment: what is compared.
      command: what to type to run it again; by default a call of this flow.

    Returns:
      The folder of the evaluation.

    Raises:
      HyperBOError: as the steps.
    """
    provide(experiment)
    failures = pretrain(experiment)
    return evaluate(experiment, command or f"flows.retrain.retrain({experiment!r})", failures)
