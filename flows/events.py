"""Events: what the flows tell each other, and anyone who listens."""

from __future__ import annotations

from typing import Any, Literal

from prefect.events import emit_event
from prefect.runtime import flow_run

from flows.service import Service

Event = Literal[
    "dataset.published",
    "prior.trained",
    "prior.evaluated",
    "prior.promoted",
    "prior.held_back",
    "trials.refused",
]
# Those that start the next flow of the chain.
_WAKING: tuple[Event, ...] = ("dataset.published", "prior.trained", "prior.evaluated")


def tell(event: Event, service: Service, version: str, **facts: Any) -> None:
    """Send an event about a version of a service's dataset; the flows that it starts get service and version.

    Sent also where nothing was left to do: who starts a flow again wants the rest of the chain too. Those
    that start the next flow are not sent from inside `retrain`, which goes through the chain itself.

    Args:
      event: what happened.
      service: whose dataset.
      version: of the dataset.
      facts: what else is known, plain JSON.
    """
    if flow_run.parent_flow_run_id and event in _WAKING:
        return
    emit_event(
        event=event,
        resource={
            "prefect.resource.id": f"hyperbo.dataset.{service.dataset.replace('/', '.')}",
            "prefect.resource.name": f"{service.dataset}:{version}",
        },
        payload={
            "service": str(service.path),
            "dataset": service.dataset,
            "version": version,
            **facts,
        },
    )
