"""Flows of Prefect that keep a dataset fresh and a prior good, as a service file describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.service.settings import Service, read_service

__all__ = ["Service", "read_service"]


def __getattr__(name: str) -> Any:
    # Imported when they are used: they need JAX, which a flow imports after its process is prepared.
    if name in __all__:
        from flows.service import settings

        return getattr(settings, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
