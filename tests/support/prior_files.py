"""A small real prior as files."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
from gp_cases import SPACE, random_gp

from hyperbo.gp.gaussian_process import Architecture
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.file import Prior, PriorDescription, save_prior

DESCRIPTION = PriorDescription(
    method="H-NLL",
    search_space=SPACE,
    output_warping="negative_log",
    architecture=Architecture((3, 4)),
    training={"steps": 10, "learning_rate": 1e-3, "group_dro_step": None},
    dataset="pd1/mini:1.0.0",
    manifest_hash="abc",
    preparation="paper",
    training_tasks=("t0", "t1"),
    held_out="d2",
    seed=3,
    losses=(2.0, 1.0 / 3.0),
    largest_jitter=1e-10,
    seconds=0.5,
    code_version="0.1.0+0123456789ab",
)


@double_precision
def make_prior(seed: int = 0) -> Prior:
    """A prior, another for every seed."""
    return Prior(jax.tree.map(np.asarray, random_gp(seed)), DESCRIPTION)


def write_prior(folder: Path, seed: int) -> Path:
    """Write a prior; returns its folder."""
    save_prior(folder, make_prior(seed))
    return folder
