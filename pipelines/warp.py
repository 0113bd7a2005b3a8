"""WarpRecords: the input in the unit cube, and the warped objective."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np

from hyperbo.search_space import SearchSpace
from hyperbo.trial import unit_input
from hyperbo.warping import output_warping
from pipelines.records import Record


class WarpRecords(beam.PTransform):
    """PCollection[Record] -> PCollection[Record] with `x` and `y`, section "PD1".

    `x` is the unit cube's point by the *declared* bounds; y = -ln(objective + 1e-10) under the warping
    `negative_log`. `y` is NaN where the trial diverged, is infeasible, or has no finite objective.

    Args:
      space: search space of the trials.
      objective: name of the metric that is warped.
      warping: name of the output warping.
    """

    def __init__(self, space: SearchSpace, objective: str, warping: str) -> None:
        super().__init__()
        output_warping(warping)  # An unknown name fails here, not on a worker.
        self._space, self._objective, self._warping = space, objective, warping

    def expand(self, input_or_inputs: Any) -> Any:
        """Warp every record by itself."""
        return input_or_inputs | "Warp" >> beam.Map(warp_record, self._space, self._objective, self._warping)


def warp_record(record: Record, space: SearchSpace, objective: str, warping: str) -> Record:
    """Derive `x` and `y` of one record."""
    trial = record.trial
    value = trial.metrics.get(objective, math.nan)
    y = math.nan
    if trial.status == "done" and math.isfinite(value):
        y = float(output_warping(warping).warp(np.array([value]))[0])
    return replace(record, x=tuple(unit_input(trial, space).tolist()), y=y)
