"""Raw files of the PD1 release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach
from hyperbo_pipelines.pd1.layout import describe_raw_files, find_raw_files, pd1_layout

if TYPE_CHECKING:
    from hyperbo_pipelines.pd1.parse import ParseTrials

__all__ = [
    "ParseTrials",
    "describe_raw_files",
    "find_raw_files",
    "pd1_layout",
]
# Imported when it is used: it needs Beam.
__getattr__, __dir__ = attach(__name__, {"parse": ["ParseTrials"]})
