"""Trials as rows of the PD1 release's own JSON-lines layout."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from pipelines.collect.models import MODELS
from pipelines.collect.preset import Preset, TaskPreset
from pipelines.collect.tasks import TaskDataset
from pipelines.collect.trainer import END_FACTOR, Curves

# Curves that the release summarises by their smallest value, its index and its step.
BEST_OF = (
    "train/error_rate",
    "train/ce_loss",
    "valid/error_rate",
    "valid/ce_loss",
    "test/error_rate",
    "test/ce_loss",
    "train_cost",
)


def trial_rows(
    preset: Preset,
    task: TaskPreset,
    dataset: TaskDataset,
    split: str,
    first: int,
    hyperparameters: Float64[np.ndarray, "p 4"],
    curves: Curves,
) -> list[dict[str, Any]]:
    """One row per trial of a block.

    Numbers of curves are float32, written by their shortest decimal; what is not finite is null.
    Columns that no two runs agree on, the wall times `eval_time` and `steps_per_sec`, are left out.

    Args:
      preset: the collection.
      task: the tuning task.
      dataset: its task dataset.
      split: `matched` or `unmatched`.
      first: number of the first trial within task and split.
      hyperparameters: raw values, a row per trial, in the order of `PD1_SEARCH_SPACE`.
      curves: the results.
    """
    study_dir = f"{preset.name}-{preset.version}/{task.study}"
    interval = task.steps // preset.evaluations
    steps = [interval * (number + 1) for number in range(preset.evaluations)]
    steps_per_epoch = len(dataset.train) // task.batch_size
    fixed = {
        "hps.batch_size": task.batch_size,
        "hps.l2_reg": task.l2,
        "hps.lr_hparams.end_factor": END_FACTOR,
        "hps.lr_hparams.schedule": "polynomial",
        "hps.model_dtype": "float32",
        "hps.opt_hparams.nesterov": True,
        "hps.optimizer": "momentum",
        "hps.total_steps": task.steps,
        "hps.train_size": len(dataset.train),
        "hps.valid_size": len(dataset.valid),
        "hps.test_size": len(dataset.test),
    }
    rows = []
    for trial, (rate, power, momentum, factor) in enumerate(hyperparameters.tolist()):
        row: dict[str, Any] = {
            "trial_dir": f"{study_dir}/{split}/{first + trial:05d}",
            "status": "diverged" if curves.diverged[trial] else "done",
            "study_group": task.study_group,
            "study_dir": study_dir,
            "dataset": task.dataset,
            "model": MODELS[task.model].family,
            "hps.lr_hparams.initial_value": rate,
            "hps.lr_hparams.power": power,
            "hps.opt_hparams.momentum": momentum,
            "hps.lr_hparams.decay_steps_factor": factor,
            **fixed,
            "global_step": steps,
            "epoch": [step / steps_per_epoch for step in steps],
            "learning_rate": _decimals(curves.learning_rate[trial]),
            "train_cost": _decimals(curves.train_cost[trial]),
        }
        for name, values in curves.metrics.items():
            row[name] = _decimals(values[trial])
        for name in BEST_OF:
            row |= _best(name, row[name], steps)
        rows.append(row)
    return rows


def _decimals(values: Float32[np.ndarray, " e"]) -> list[float | None]:
    """Each number as the shortest decimal that names the same float32; null where it is not finite."""
    return [float(str(value)) if np.isfinite(value) else None for value in values]


def _best(name: str, curve: list[float | None], steps: list[int]) -> dict[str, Any]:
    finite = [(value, index) for index, value in enumerate(curve) if value is not None]
    value, index = min(finite, default=(None, None))
    return {
        f"best_{name}": value,
        f"best_{name}_index": index,
        f"best_{name}_step": None if index is None else steps[index],
    }


def to_json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Rows as JSON lines, strict JSON: no bare NaN."""
    lines = (json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n" for row in rows)
    return "".join(lines).encode()
