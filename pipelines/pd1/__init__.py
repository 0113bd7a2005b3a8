"""Raw files of the PD1 release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.pd1.layout import describe_raw_files, find_raw_files, pd1_layout

if TYPE_CHECKING:
    from pipelines.pd1.parse import ParseTrials

__all__ = [
    "ParseTrials",
    "describe_raw_files",
    "find_raw_files",
    "pd1_layout",
]


def __getattr__(name: str) -> Any:
    if name == "ParseTrials":
        # Beam takes long to import.
        from pipelines.pd1.parse import ParseTrials

        return ParseTrials
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
