"""Events: what the flows tell each other, and whoever listens."""

from __future__ import annotations

from typing import Any, Literal

from prefect.events import emit_event
from prefect.runtime import flow_run

from hyperbo_flows.service.settings import Service

Event = Literal[
    "dataset.published",
    "prior.trained",
    "prior.evaluated",
    "prior.promoted",
    "prior.held_back",
    "trials.refused",
]
# The events that start the next flow of the chain.
_STARTING: tuple[Event, ...] = ("dataset.published", "prior.trained", "prior.evaluated")


def tell(event: Event, service: Service, version: str, **facts: Any) -> None:
    """Send an event about a version of a service's dataset. Flows that it starts get service and version.

    The event is sent even if nothing was left to do: a flow that is started again starts the rest of the
    chain. Inside `retrain`, which runs the chain itself, events that start the next flow are not sent.

    Args:
      event: what happened.
      service: the service.
      version: version of its dataset.
      facts: further facts, plain JSON.
    """
    if flow_run.parent_flow_run_id and event in _STARTING:
        return
    emit_event(
        event=event,
        resource={
            "prefect.resource.id": f"hyperbo.dataset.{service.dataset.replace('/', '.')}",
            "prefect.resource.name": f"{service.dataset}:{version}",
        },
        payload={"service": str(service.path), "dataset": service.dataset, "version": version, **facts},
    )
