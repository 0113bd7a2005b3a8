"""Synthetic rows in the layout of the PD1 release: for tests only, made up by formula, never shipped."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

TASKS = (
    "digits_mlp,digits,mlp,mlp,32",
    "digits_mlp,digits,mlp,mlp,128",
    "wine_mlp,wine,mlp,mlp,32",
    "text_xfmr,text,xformer,transformer,64",
)


def rows(
    split: str, phase: int, *, tasks: Sequence[str] = TASKS, inputs: int = 10, points: int = 5, seed: int = 0
) -> list[dict[str, Any]]:
    """`inputs` rows for each task; matched rows share their inputs; about one row in eight diverged."""
    made = []
    for number, task in enumerate(tasks):
        shared = split == "matched"
        # A phase has inputs of its own.
        draw = np.random.default_rng([seed, phase, 0 if shared else 1 + number])
        unit = draw.uniform(size=(inputs, 4))
        outcome = np.random.default_rng([seed, phase, number, int(shared)])
        for trial in range(inputs):
            u = unit[trial]
            made.append(_row(task, f"{split}{phase}/{task}/{trial:05d}", u, outcome, points, number))
    return made


def _row(
    task: str, trial_dir: str, u: np.ndarray, outcome: np.random.Generator, points: int, number: int
) -> dict[str, Any]:
    _, dataset, model, _, _ = task.split(",")
    diverged = bool(outcome.uniform() < 0.125)
    steps = list(range(10, 10 * points + 1, 10))
    curve = (
        0.9 * np.exp(-np.linspace(0, 2, points) * (1 + u[0]))
        + 0.02 * number
        + outcome.uniform(0, 0.05, points)
    )
    errors: list[float | None] = [float(v) for v in np.clip(curve, 0, 1)]
    costs: list[float | None] = [float(v) for v in curve * 2.5]
    if diverged:
        errors[-1] = costs[-1] = None
    finite = [v for v in errors if v is not None]
    best = int(np.argmin(finite))
    row: dict[str, Any] = {
        "trial_dir": trial_dir,
        "study_group": task,
        "dataset": dataset,
        "model": model,
        "status": "diverged" if diverged else "done",
        "hps.lr_hparams.initial_value": float(10 ** (-5 + 6 * u[0])),
        "hps.lr_hparams.power": float(0.1 + 1.9 * u[1]),
        "hps.opt_hparams.momentum": float(1 - 10 ** (-3 * u[2])),
        "hps.lr_hparams.decay_steps_factor": float(0.01 + 0.98 * u[3]),
        "hps.batch_size": int(task.rsplit(",", 1)[1]),
        "global_step": steps,
        "train_cost": costs,
        "valid/error_rate": errors,
        "train/ce_loss": costs,
    }
    # Half of the diverged trials had a best value before they diverged; the others have none.
    if not diverged or trial_dir.endswith(("0", "2", "4", "6", "8")):
        row |= {
            "best_valid/error_rate": finite[best],
            "best_valid/error_rate_index": best,
            "best_valid/error_rate_step": steps[best],
        }
    else:
        row["best_valid/error_rate"] = None
    return row


def write(folder: Path, name: str, content: Sequence[dict[str, Any] | str | bytes]) -> Path:
    """Write rows, or raw lines, as a file of the release's layout, gzipped if the name says so."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in content
    ]
    data = b"".join(line + b"\n" for line in lines)
    path = folder / name
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return path


def write_release(folder: Path, **sizes: Any) -> Path:
    """A small release: matched and unmatched trials of phase 1, matched ones of phase 0."""
    write(folder, "pd1_matched_phase0_results.jsonl", rows("matched", 0, **sizes))
    write(folder, "pd1_matched_phase1_results.jsonl.gz", rows("matched", 1, **sizes))
    write(folder, "pd1_unmatched_phase1_results.jsonl.gz", rows("unmatched", 1, **sizes))
    return folder
