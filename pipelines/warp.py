"""WarpTables: inputs in the unit cube, and the warped objective."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from hyperbo.search_space import SearchSpace
from hyperbo.warping import output_warping


class WarpTables(beam.PTransform):
    """PCollection[pa.Table] -> PCollection[pa.Table] with `x` and `y`, section "PD1".

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
        """Warp every table by itself."""
        return input_or_inputs | "Warp" >> beam.Map(warp_table, self._space, self._objective, self._warping)


def warp_table(table: pa.Table, space: SearchSpace, objective: str, warping: str) -> pa.Table:
    """Derive `x.<parameter>` and `y` of every row."""
    x = space.to_unit(np.stack([table[f"hyperparameters.{name}"].to_numpy() for name in space.names], axis=1))
    value = table[f"metrics.{objective}"].to_numpy()
    done = (np.array(table["status"].to_pylist()) == "done") & np.isfinite(value)
    y = np.full(len(value), np.nan)
    y[done] = output_warping(warping).warp(value[done])
    table = table.append_column("y", pa.array(y))
    for column, name in enumerate(space.names):
        table = table.append_column(f"x.{name}", pa.array(x[:, column]))
    return table
