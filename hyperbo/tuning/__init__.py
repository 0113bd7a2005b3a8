"""Tuning with a pre-trained prior: where to try next, in any region, beside trials that still run."""

from hyperbo.tuning.batches import BATCH_STRATEGIES, BatchStrategy, require_strategy
from hyperbo.tuning.history import History
from hyperbo.tuning.proposals import propose, trial_stream
from hyperbo.tuning.region import Choices, Range, Region, coordinates

__all__ = [
    "BATCH_STRATEGIES",
    "BatchStrategy",
    "Choices",
    "History",
    "Range",
    "Region",
    "coordinates",
    "propose",
    "require_strategy",
    "trial_stream",
]
