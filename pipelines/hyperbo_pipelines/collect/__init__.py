"""Collecting tuning trials by real training: task datasets, models, trainer, collections."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_pipelines.collect.objective import PresetTask
    from hyperbo_pipelines.collect.preset import Preset, TaskPreset, load_preset
    from hyperbo_pipelines.collect.sweep import Collection, collect

__all__ = ["Collection", "Preset", "PresetTask", "TaskPreset", "collect", "load_preset"]
# Imported when they are used: they need JAX.
__getattr__, __dir__ = attach(
    __name__,
    {
        "objective": ["PresetTask"],
        "preset": ["Preset", "TaskPreset", "load_preset"],
        "sweep": ["Collection", "collect"],
    },
)
