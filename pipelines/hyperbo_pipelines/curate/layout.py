"""Layout: the columns of a dataset's records, and the Arrow table of a list of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from hyperbo.data.choice import Choice
from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import Trial
from hyperbo_pipelines.curate.columns import ARROW_TYPES, IDENTITY, MODEL, OBJECTIVE, RELATIONS, Column
from hyperbo_pipelines.curate.hyperparameters import raw_array, raw_column


@dataclass(frozen=True)
class Layout:
    """The columns of a dataset's records.

    Attributes:
      space: search space of the trials.
      metrics: names of the metrics.
      curves: names of the curves; empty if the dataset is stored without them.
      model: whether trials name their model and its batch size.
      extra: further columns that only this dataset has.
    """

    space: SearchSpace
    metrics: tuple[str, ...]
    curves: tuple[str, ...] = ()
    model: bool = False
    extra: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of a record, in order."""
        return (
            *IDENTITY,
            *(MODEL if self.model else ()),
            *RELATIONS,
            *self.extra,
            OBJECTIVE,
            *(raw_column(each) for each in self.space.parameters),
            *(Column(f"x.{name}", "real", _meaning(name, self.space)) for name in self.space.columns),
            *(Column(f"metrics.{name}", "real", f"{name}; may be missing") for name in self.metrics),
            *(
                Column(f"curves.{name}", "reals", f"{name} along training; empty: none")
                for name in self.curves
            ),
        )

    def raw_table(self, trials: Sequence[Trial]) -> pa.Table:
        """Trials as a table of recorded values, bit for bit: all columns except relations, `x` and `y`."""
        identity = (*IDENTITY, *(MODEL if self.model else ()))
        arrays = {
            column.name: pa.array([getattr(trial, column.name) for trial in trials], ARROW_TYPES[column.kind])
            for column in identity
        }
        for each in self.space.parameters:
            values = (trial.hyperparameters.get(each.name) for trial in trials)
            arrays[f"hyperparameters.{each.name}"] = raw_array(each, values)
        for name in self.metrics:
            arrays[f"metrics.{name}"] = _reals(trial.metrics[name] for trial in trials)
        for name in self.curves:
            arrays[f"curves.{name}"] = _lists([trial.curves.get(name, ()) for trial in trials])
        return pa.table(arrays)


def _meaning(column: str, space: SearchSpace) -> str:
    """What a column of `x` says."""
    if column not in space.names:
        return f"1 where {column}, else 0"
    if isinstance(space.parameter(column), Choice):
        return f"place of {column} among its levels, in [0, 1]"
    return f"{column} in [0, 1] by its declared range"


def _reals(values: Any) -> pa.Array:
    # Through NumPy: Arrow would turn NaN into null.
    return pa.array(np.fromiter(values, np.float64))


def _lists(values: Sequence[tuple[float, ...]]) -> pa.Array:
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    flat = np.fromiter(chain.from_iterable(values), np.float64, int(lengths.sum()))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat))
