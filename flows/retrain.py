"""Retrain: the whole chain, from raw trials to a report."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from flows.evaluate import evaluate
from flows.pretrain import pretrain
from flows.refresh import refresh
from flows.settings import Settings


@flow(name="retrain", flow_run_name="{settings.dataset}", validate_parameters=False)
def retrain(settings: Settings, command: str | None = None) -> Path:
    """Refresh the dataset version, pre-train, evaluate and report; only what is missing is done.

    Args:
      settings: of the main job.
      command: what to type to run it again; by default a call of this flow.

    Returns:
      The folder of the evaluation.

    Raises:
      HyperBOError: as the steps.
    """
    refresh(settings)
    pretrain(settings)
    return evaluate(settings, command or f"flows.retrain.retrain({settings!r})")
