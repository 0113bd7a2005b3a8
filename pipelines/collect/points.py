"""Which hyperparameter points are tried: matched sets for all tasks, and new points for each task."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Float64
from scipy.stats import qmc

from hyperbo.search_space import PD1_SEARCH_SPACE
from pipelines.collect.preset import Preset, TaskPreset


def matched_points(preset: Preset, phase: int) -> Float64[np.ndarray, "m 4"]:
    """The points of a phase that every task is trained with: raw values of a scrambled Halton sequence."""
    return _halton(np.random.default_rng([preset.seed, 0, phase]), preset.matched)


def unmatched_points(preset: Preset, task: TaskPreset, phase: int, count: int) -> Float64[np.ndarray, "n 4"]:
    """The first points of a task's own scrambled Halton sequence for a phase: raw hyperparameters."""
    return _halton(np.random.default_rng([preset.seed, 1, phase, task_seed(preset, task)]), count)


def task_seed(preset: Preset, task: TaskPreset) -> int:
    """A seed of the task's own, whatever other tasks the preset has."""
    digest = hashlib.sha256(f"{preset.seed}/{task.study}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def _halton(generator: np.random.Generator, count: int) -> Float64[np.ndarray, "n 4"]:
    sequence = qmc.Halton(PD1_SEARCH_SPACE.dimension, scramble=True, rng=generator)
    return PD1_SEARCH_SPACE.from_unit(sequence.random(count))
