"""From raw trials to clean, matched, warped records."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach
from hyperbo_pipelines.curate.columns import Column
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.curate.layout import Layout

if TYPE_CHECKING:
    from hyperbo_pipelines.curate.build import CurateTrials, SpillCurated, WarpedMetric

__all__ = ["Column", "CurateTrials", "Layout", "RawFile", "Reject", "SpillCurated", "WarpedMetric"]
# Imported when they are used: they need Beam.
__getattr__, __dir__ = attach(__name__, {"build": ["CurateTrials", "SpillCurated", "WarpedMetric"]})
