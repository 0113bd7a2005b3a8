"""HPO-B: the benchmark's files, read as streams and turned into tables of curated records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.hpob.layout import SpaceDescription, read_descriptors
from pipelines.hpob.raw_files import HpobFiles, find_hpob_files

if TYPE_CHECKING:
    from pipelines.hpob.parse import ParseHpob

__all__ = [
    "HpobFiles",
    "ParseHpob",
    "SpaceDescription",
    "find_hpob_files",
    "read_descriptors",
]


def __getattr__(name: str) -> Any:
    if name == "ParseHpob":
        # Beam takes long to import.
        from pipelines.hpob.parse import ParseHpob

        return ParseHpob
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
