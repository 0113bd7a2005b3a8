"""The columns of curated records, and the Arrow table of a list of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import Trial

Kind = Literal["text", "texts", "integer", "boolean", "real", "reals"]
ARROW_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "real": pa.float64(),
    "reals": pa.list_(pa.float64()),
}


class Column(NamedTuple):
    """One column: its name, `<group>.<name>` or `<name>`, its kind and what it means."""

    name: str
    kind: Kind
    doc: str


IDENTITY = (
    Column("task", "text", "name of the task"),
    Column("task_dataset", "text", "what the task's model was trained on"),
    Column("trial_id", "text", "unique within the dataset"),
    Column("phase", "integer", "collection phase; 0 where there is but one"),
    Column("origin", "text", "how the trial came about"),
    Column("source", "text", "raw file and line the trial was read from"),
    Column("status", "text", "done, diverged or infeasible"),
    Column("diverged", "boolean", "whether training diverged"),
    Column("input_id", "text", "equal for trials with the same raw hyperparameters"),
)
MODEL = (
    Column("model", "text", "model trained"),
    Column("batch_size", "integer", "minibatch size of the training run"),
)
RELATIONS = (
    Column("duplicates", "texts", "ids of other trials of the same task and input, the first few"),
    Column("block", "text", "matched block in which the trial stands for its task and input; empty: none"),
)
OBJECTIVE = Column("y", "real", "warped objective, to be maximised; NaN where diverged or without a value")
_DOC = b"description"
# An input may be run thousands of times: naming all ids with every trial would take millions.
MOST_DUPLICATES = 16
# The one order of records within a split, in which they are hashed and stored.
CANONICAL_ORDER = ("task", "phase", "trial_id")


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
        names = self.space.names
        return (
            *IDENTITY,
            *(MODEL if self.model else ()),
            *RELATIONS,
            *self.extra,
            OBJECTIVE,
            *(Column(f"hyperparameters.{name}", "real", f"raw {name}, as recorded") for name in names),
            *(Column(f"x.{name}", "real", f"{name} in [0, 1] by its declared range") for name in names),
            *(Column(f"metrics.{name}", "real", f"{name}; NaN: none") for name in self.metrics),
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
        for name in self.space.names:
            arrays[f"hyperparameters.{name}"] = _reals(trial.hyperparameters[name] for trial in trials)
        for name in self.metrics:
            arrays[f"metrics.{name}"] = _reals(trial.metrics[name] for trial in trials)
        for name in self.curves:
            arrays[f"curves.{name}"] = _lists([trial.curves.get(name, ()) for trial in trials])
        return pa.table(arrays)


def _reals(values: Any) -> pa.Array:
    # Through NumPy: Arrow would turn NaN into null.
    return pa.array(np.fromiter(values, np.float64))


def _lists(values: Sequence[tuple[float, ...]]) -> pa.Array:
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    flat = np.fromiter(chain.from_iterable(values), np.float64, int(lengths.sum()))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat))


def schema(columns: Sequence[Column]) -> pa.Schema:
    """Columns as an Arrow schema without nulls; each field holds its description."""
    return pa.schema(
        [
            pa.field(column.name, ARROW_TYPES[column.kind], nullable=False, metadata={_DOC: column.doc})
            for column in columns
        ]
    )


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns that `schema` made an Arrow schema of."""
    return tuple(
        Column(field.name, _kind(field.type), (field.metadata or {}).get(_DOC, b"").decode())
        for field in schema
    )


def _kind(arrow_type: pa.DataType) -> Kind:
    # Parquet gives the items of a list another name.
    plain = pa.list_(arrow_type.value_type) if pa.types.is_list(arrow_type) else arrow_type
    return next(kind for kind, each in ARROW_TYPES.items() if each == plain)
