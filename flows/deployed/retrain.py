"""Retrain: the whole chain in one flow, for schedules without events and for a person at a terminal."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from prefect import flow

from flows.deployed.evaluate import evaluate
from flows.deployed.feedback import feedback
from flows.deployed.pretrain import pretrain
from flows.deployed.promote import promote
from flows.deployed.refresh import refresh


@flow(name="retrain service", timeout_seconds=14 * 24 * 3600, **surroundings.options())
def retrain(service: str) -> None:
    """Feed back, refresh, pre-train, evaluate, promote, record: only what is missing is done.

    Args:
      service: the service file.

    Raises:
      HyperBOError: as the steps.
    """
    feedback(service)
    version = refresh(service)
    if version:
        pretrain(service, version)
        evaluation = evaluate(service, version)
        promote(service, version, evaluation)
        feedback(service, evaluation)
