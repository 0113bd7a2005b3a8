"""Runs of Bayesian optimization as records, one row per observation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hyperbo.simulate import Run, Simulation


def run_records(method: str, runs: Sequence[Run], simulation: Simulation) -> pd.DataFrame:
    """Write runs down as records, one row per observation: what `hyperbo.evaluation` reads.

    Raises:
      NumericalError: a run failed, so that there is nothing to write down of it.
    """
    simulation.require_usable()
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "task": run.task.name,
                "task_dataset": run.task.dataset,
                "seed": run.seed,
                "iteration": np.arange(1, len(row) + 1),
                "trial_id": np.array(run.task.trial_ids, dtype=object)[row],
                "y": run.task.y[row],
                "objective": run.task.objective[row],
                "y_max": run.task.y.max(),
                "y_min": run.task.y.min(),
                **_best_given(run),
                "mean": mean,
                "deviation": deviation,
            }
        )
        for run, row, mean, deviation in zip(
            runs, simulation.choices, simulation.mean, simulation.deviation, strict=True
        )
    ]
    return pd.concat(frames, ignore_index=True)


def _best_given(run: Run) -> dict[str, float]:
    if not run.initial:
        return {"y_initial": np.nan, "objective_initial": np.nan}
    best = max(run.initial, key=lambda row: run.task.y[row])
    return {"y_initial": run.task.y[best], "objective_initial": run.task.objective[best]}
