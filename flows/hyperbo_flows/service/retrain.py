"""Retrain: the whole chain in one flow, for schedules without events and for people at a terminal."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow

from hyperbo.errors import UnreachableError, VersionConflictError
from hyperbo_flows.service.evaluate import evaluate
from hyperbo_flows.service.feedback import feedback
from hyperbo_flows.service.intake import newest
from hyperbo_flows.service.pretrain import pretrain
from hyperbo_flows.service.promote import promote
from hyperbo_flows.service.refresh import refresh
from hyperbo_flows.service.settings import read_service

# How often the new prior is compared, where somebody puts another into service meanwhile.
_MOST_CONTESTS = 3


@flow(name="retrain service", timeout_seconds=14 * 24 * 3600, **surroundings.OPTIONS)
def retrain(service: str) -> None:
    """Feed back, refresh, pre-train, evaluate, promote, record: only what is missing is done.

    Args:
      service: path of the service file.

    Raises:
      UnreachableError: a source could not be reached; the rest of the chain is done.
      HyperBOError: a step failed.
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
