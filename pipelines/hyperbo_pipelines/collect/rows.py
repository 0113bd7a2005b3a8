"""Trials as rows of the PD1 release's own JSON-lines layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from hyperbo_pipelines.collect.datasets import TaskDataset
from hyperbo_pipelines.collect.models import MODELS
from hyperbo_pipelines.collect.preset import Preset, TaskPreset
from hyperbo_pipelines.collect.trainer import END_FACTOR, Curves

# Curves that the release summarises by smallest value, its index and its step; here also the last value.
BEST_OF = (
    "train/error_rate",
    "train/ce_loss",
    "valid/error_rate",
    "valid/ce_loss",
    "test/error_rate",
    "test/ce_loss",
    "train_cost",
)


def study_group(task: TaskPreset, dataset: TaskDataset) -> str:
    """The task's name as PD1 writes it: `shortname,dataset,model,variant,batch_size`."""
    variant = f"{task.model}_{dataset.view}" if dataset.view else task.model
    return f"{task.shortname},{dataset.name},{MODELS[task.model].family},{variant},{task.batch_size}"


def trial_rows(
    preset: Preset,
    task: TaskPreset,
    dataset: TaskDataset,
    places: Sequence[str],
    hyperparameters: Float64[np.ndarray, "p 4"],
    curves: Curves,
) -> list[dict[str, Any]]:
    """One row per trial of a block.

    Numbers of curves are float32, written as their shortest decimal; a number that is not finite is null.
    Wall times differ between runs, so they have rows of their own: `timing_rows`. `places` are the ends of
    the trials' `trial_dir`; `hyperparameters` are raw values in the order of `PD1_SEARCH_SPACE`.
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
            "trial_dir": f"{study_dir}/{places[trial]}",
            "status": "diverged" if curves.diverged[trial] else "done",
            "study_group": study_group(task, dataset),
            "study_dir": study_dir,
            "dataset": dataset.name,
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
            row |= _best(name, row[name], steps) | {f"final_{name}": row[name][-1]}
        rows.append(row)
    return rows


def timing_rows(rows: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """The wall time of each trial of a block: an equal share, because the trials are trained side by side."""
    share = seconds / len(rows)
    return [
        {
            "trial_dir": row["trial_dir"],
            "seconds": round(share, 6),
            "steps_per_sec": round(row["hps.total_steps"] / share, 3),
            "block_seconds": round(seconds, 6),
            "block_trials": len(rows),
        }
        for row in rows
    ]


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
