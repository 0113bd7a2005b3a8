"""Optuna: a sampler with a pre-trained prior, and what `Tuner` needs of Optuna's studies and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from hyperbo.tuning.optuna.sampler import HyperBOSampler

__all__ = ["HyperBOSampler"]
# Imported when it is used: it needs Optuna; the rest of `hyperbo.tuning` does not.
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"sampler": ["HyperBOSampler"]})
