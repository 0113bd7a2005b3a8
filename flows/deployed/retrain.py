"""Retrain: the whole chain in one flow, for schedules without events and for a person at a terminal."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow

from flows.deployed.evaluate import evaluate
from flows.deployed.feedback import feedback
from flows.deployed.pretrain import pretrain
from flows.deployed.promote import promote
from flows.deployed.refresh import refresh
from flows.intake import newest
from flows.service import read_service
from hyperbo.errors import UnreachableError, VersionConflictError

# How often the new prior is compared anew because somebody put another into service meanwhile.
_MOST_CONTESTS = 3


@flow(name="retrain service", timeout_seconds=14 * 24 * 3600, **surroundings.options())
def retrain(service: str) -> None:
    """Feed back, refresh, pre-train, evaluate, promote, record: only what is missing is done.

    Args:
      service: the service file.

    Raises:
      UnreachableError: a source could not be reached; the rest of the chain is done.
      HyperBOError: as the steps.
    """
    feedback(service)
    unreachable: UnreachableError | None = None
    try:
        version = refresh(service)
    except UnreachableError as error:
        here, unreachable = newest(read_service(Path(service))), error
        version = here.version if here else ""
    if version:
        _decide(service, version)
    if unreachable:
        raise unreachable


def _decide(service: str, version: str) -> None:
    for _ in range(_MOST_CONTESTS):
        pretrain(service, version)
        evaluation = evaluate(service, version)
        decided = promote(service, version, evaluation)
        feedback(service, evaluation)
        if decided:
            return
    raise VersionConflictError(
        f"the prior in service changed {_MOST_CONTESTS} times while the one of {version} was compared; "
        "run it again"
    )
