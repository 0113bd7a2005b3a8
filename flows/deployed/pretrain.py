"""Pre-train: the priors of a version that the ledger lacks, on whatever accelerator is there."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow

from flows.champion import contest
from flows.events import tell
from flows.pretrain import pretrain as pretrain_experiment
from flows.pretrain import pretrain_arm
from flows.service import read_service
from hyperbo.errors import NumericalError


@flow(name="pretrain", timeout_seconds=7 * 24 * 3600, **surroundings.options())
def pretrain(service: str, version: str) -> None:
    """Pre-train what is missing: each fold's priors of every arm, those in service, and the one to promote.

    Args:
      service: the service file.
      version: of its dataset.

    Raises:
      HyperBOError: as `flows.pretrain.pretrain_arm`; or the prior to promote could not be trained.
    """
    of = read_service(Path(service))
    experiment = contest(of, version)
    failed = pretrain_experiment.fn(experiment)
    if pretrain_arm(of.for_use(version), of.challenger, everything=True):
        raise NumericalError(f"the prior of {of.challenger} to promote failed, as the lines above say")
    tell("prior.trained", of, version, failed=len(failed))
