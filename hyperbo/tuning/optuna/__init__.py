"""Optuna: a sampler with a pre-trained prior, and what `Tuner` needs of Optuna's studies and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperbo.tuning.optuna.sampler import HyperBOSampler

__all__ = ["HyperBOSampler"]


def __getattr__(name: str) -> Any:
    # Imported when it is used: the package needs Optuna, the rest of `hyperbo.tuning` does not.
    if name == "HyperBOSampler":
        from hyperbo.tuning.optuna.sampler import HyperBOSampler

        return HyperBOSampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
