"""HPO-B: the benchmark's files, read as streams and turned into tables of curated records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach
from hyperbo_pipelines.hpob.layout import SpaceDescription, read_descriptors
from hyperbo_pipelines.hpob.raw_files import HpobFiles, find_hpob_files

if TYPE_CHECKING:
    from hyperbo_pipelines.hpob.parse import ParseHpob

__all__ = [
    "HpobFiles",
    "ParseHpob",
    "SpaceDescription",
    "find_hpob_files",
    "read_descriptors",
]
# Imported when it is used: it needs Beam.
__getattr__, __dir__ = attach(__name__, {"parse": ["ParseHpob"]})
