"""Tuning with a pre-trained prior: what to try next, in any region, while other trials are still running."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.tuning.axes import Choices, Range
    from hyperbo.tuning.batches import BATCH_STRATEGIES, BatchStrategy
    from hyperbo.tuning.belief import Belief, universal_prior
    from hyperbo.tuning.optuna.sampler import HyperBOSampler
    from hyperbo.tuning.proposals import propose
    from hyperbo.tuning.region import Region
    from hyperbo.tuning.trial import Infeasible, TuningTrial
    from hyperbo.tuning.tuner import Tuner

__all__ = [
    "BATCH_STRATEGIES",
    "BatchStrategy",
    "Belief",
    "Choices",
    "HyperBOSampler",
    "Infeasible",
    "Range",
    "Region",
    "Tuner",
    "TuningTrial",
    "propose",
    "universal_prior",
]
# Imported when they are used: proposals need no Optuna.
__getattr__, __dir__ = attach(
    __name__,
    {
        "axes": ["Choices", "Range"],
        "batches": ["BATCH_STRATEGIES", "BatchStrategy"],
        "belief": ["Belief", "universal_prior"],
        "optuna.sampler": ["HyperBOSampler"],
        "proposals": ["propose"],
        "region": ["Region"],
        "trial": ["Infeasible", "TuningTrial"],
        "tuner": ["Tuner"],
    },
)
