"""Folders of evaluations, written by hand or by a real simulation of random search: for tests only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hyperbo.bayesopt.offline import Run, run_records, simulate
from hyperbo.data.tuning_data import TuningData
from hyperbo.evaluation.records.metadata import write_metadata
from hyperbo.evaluation.records.runs import write_records
from hyperbo.methods import Rand


def rand_records(data: TuningData, seeds: Sequence[int], iterations: int) -> pd.DataFrame:
    """Random search on every task, for real."""
    runs = [Run(Rand().policy(None, task), task, seed) for task in data.tasks for seed in seeds]
    return run_records("Rand", runs, simulate(runs, iterations))


def drawn_records(
    data: TuningData, methods: Sequence[str], seeds: Sequence[int], iterations: int
) -> pd.DataFrame:
    """Valid candidates drawn by NumPy, without a compiler to wait for."""
    draw = np.random.default_rng(len(methods))
    rows = [
        (method, task.name, task.dataset, seed, t + 1, task.trial_ids[i], task.y[i], task.objective[i], best)
        for method in methods
        for task in data.tasks
        for best in [task.y.max()]
        for seed in seeds
        for t, i in enumerate(draw.integers(len(task.y), size=iterations))
    ]
    names = ["method", "task", "task_dataset", "seed", "iteration", "trial_id", "y", "objective", "y_max"]
    return pd.DataFrame(rows, columns=names)


def write_evaluation(folder: Path, records: pd.DataFrame, data: TuningData, **changes: Any) -> Path:
    """Write records, and the metadata that belong to them, into a folder; and return it."""
    write_records(records, folder / "records.parquet")
    metadata = {
        "dataset": data.provenance.dataset,
        "manifest_hash": data.provenance.manifest_hash,
        "preparation": data.provenance.preparation,
        "protocol": "a candidate may be observed again",
        "code_version": "0.1.0+000000000000",
        "methods": {method: {} for method in sorted(set(records["method"]))},
        "tasks": sorted(set(records["task"])),
        "seeds": sorted(map(int, set(records["seed"]))),
        "iterations": int(records["iteration"].max()),
        "platform": {"Python": "3.11"},
        "seconds": {},
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:00:01Z",
        "run_ids": [],
        "command": "",
    }
    write_metadata(metadata | changes, folder / "metadata.json")
    return folder
