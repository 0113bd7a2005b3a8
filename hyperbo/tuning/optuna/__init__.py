"""Optuna: a sampler with a pre-trained prior, and what `Tuner` needs of Optuna's studies and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach, require_extras

if TYPE_CHECKING:
    from hyperbo.tuning.optuna.sampler import HyperBOSampler

__all__ = ["HyperBOSampler"]
require_extras("optuna", purpose="tuning")
# Imported when it is used: Optuna takes a second.
__getattr__, __dir__ = attach(__name__, {"sampler": ["HyperBOSampler"]})
