"""Contests that failed: recorded, so that nothing is tried again while nothing has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flows import ledger
from flows.champion import champion_of, described, evidence_of, is_decided
from flows.identities import libraries
from flows.progress import say
from flows.service import Service
from hyperbo.errors import NumericalError


@contextmanager
def failure_recorded(service: Service, version: str) -> Iterator[None]:
    """Record where a step of a contest has no usable result: with the same inputs it would have none again.

    Args:
      service: what the flows keep going.
      version: of its dataset.

    Raises:
      NumericalError: as the step, after it was recorded.
    """
    try:
        yield
    except NumericalError as error:
        ledger.finish(
            service.design.runs, _identity(service, version), lambda folder: None, {"reason": str(error)}
        )
        raise


def failure_of(service: Service, version: str) -> str | None:
    """Why the contest on the prior of a version failed, with these settings, champion, code and libraries."""
    folder = ledger.find(service.design.runs, _identity(service, version))
    return None if folder is None else str(ledger.facts(folder)["reason"])


def is_open(service: Service, version: str) -> bool:
    """Whether the chain is to be started for a version: its prior was not decided on, and no attempt failed.

    Where one failed, it says so, and what to do about it.
    """
    if is_decided(service, version):
        return False
    reason = failure_of(service, version)
    if reason is not None:
        say(
            f"{service.promotion.line}: no decision on the prior of {version}: {reason}. It is tried again "
            "when the service file, the prior in service or the code changes, or by: "
            f"hyperbo flows run retrain --service {service.path}"
        )
    return reason is None


def _identity(service: Service, version: str) -> dict[str, Any]:
    champion = champion_of(service)
    return {
        "kind": "contest_failure",
        **evidence_of(service, version),
        "line": service.promotion.line,
        "champion": None if champion is None else described(champion),
        "libraries": libraries(),
    }
