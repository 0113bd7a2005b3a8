"""Flows of Prefect that keep a dataset fresh and a prior good, as a service file describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_flows.service.settings import Service, read_service

__all__ = ["Service", "read_service"]
# Imported when they are used: they need JAX, which a flow imports after its process is prepared.
__getattr__, __dir__ = attach(__name__, {"settings": ["Service", "read_service"]})
