"""The synthetic tasks of the arena: a dataset version of known functions, and their values without noise.

A family has eight tasks to train on and three to test, all at the same inputs, which fill the cube evenly.
Each observation has noise of its own. Numbers are rounded, so that every machine makes the same file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pd1_builder
from hyperbo.methods.mixture.uninformed import even_points
from hyperbo_flows.arena.families import DIMENSION, FAMILIES
from pd1_builder import Manifest

SYNTHETIC = "trials/arena_synthetic:1.0.0"
TRAINING_TASKS, TEST_TASKS, INPUTS = 8, 3, 256
NOISE = 0.1
_DECIMALS = 6
_SPACE = """
objective = "value"
direction = "maximize"
task_dataset = {{ column = "family" }}
trial_id = {{ column = "trial" }}
{parameters}
[about]
description = "Shifted test functions and draws of Gaussian processes, with noise of deviation {noise}."
"""
_PARAMETER = """
[[parameters]]
name = "x{number}"
lower = 0.0
upper = 1.0
"""


def build_synthetic(data_dir: Path) -> Manifest:
    """Build the version of the synthetic tasks in a data folder; one that is there is verified.

    Raises:
      VersionConflictError: the version is there, and is damaged or of other files.
    """
    # The order of TOML: fields of the file, its table, then the tables of parameters.
    parameters = "".join(_PARAMETER.format(number=i + 1) for i in range(DIMENSION))
    with TemporaryDirectory(prefix="arena-") as scratch:
        space, rows = Path(scratch) / "space.toml", Path(scratch) / "tasks.jsonl"
        space.write_text(_SPACE.format(parameters=parameters, noise=NOISE), encoding="utf-8")
        lines = (json.dumps(row) for row in synthetic_rows())
        rows.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        name, _, version = SYNTHETIC.partition(":")
        return pd1_builder.add(name, [rows], space, version=version, data_dir=data_dir)


@cache
def noise_free() -> dict[str, float]:
    """The value of the function at every trial, without noise, by trial id."""
    return {f"{row['task']}/{row['trial']}": clean for row, clean in _trials()}


def synthetic_rows() -> Iterator[dict[str, Any]]:
    """The rows of the file that the version is made of."""
    return (row for row, _ in _trials())


def _trials() -> Iterator[tuple[dict[str, Any], float]]:
    """Every trial as a row of the file, with its value without noise."""
    x = np.round(even_points(INPUTS, DIMENSION), _DECIMALS)
    for family in FAMILIES:
        for kind, count in (("train", TRAINING_TASKS), ("test", TEST_TASKS)):
            for number in range(count):
                task = f"{family}-{kind}-{number}"
                random = np.random.default_rng(zlib.crc32(task.encode()))
                clean = np.round(FAMILIES[family](x, random), _DECIMALS)
                noisy = np.round(clean + NOISE * random.normal(size=len(x)), _DECIMALS)
                for row, (point, value, observed) in enumerate(zip(x, clean, noisy, strict=True)):
                    named = {f"x{i + 1}": float(each) for i, each in enumerate(point)}
                    given = {"task": task, "family": family, "trial": row, "value": float(observed)}
                    yield given | named, float(value)
