"""A curated record as a flat row of typed columns, as TFDS features, and as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow_datasets as tfds

from hyperbo.search_space import SearchSpace
from pipelines.records import Record

Kind = Literal["text", "texts", "integer", "boolean", "real", "reals"]


class Column(NamedTuple):
    """One column: its name, `<group>.<name>` or `<name>`, its kind and what it means."""

    name: str
    kind: Kind
    doc: str


_IDENTITY = (
    Column("task", "text", "name of the task: <task dataset>-<model>-<batch size>"),
    Column("task_dataset", "text", "what the task's model was trained on"),
    Column("model", "text", "model trained"),
    Column("batch_size", "integer", "minibatch size of the training run"),
    Column("trial_id", "text", "unique within the dataset"),
    Column("phase", "integer", "collection phase, 0 or 1"),
    Column("origin", "text", "how the trial came about"),
    Column("source", "text", "raw file and line the trial was read from"),
    Column("status", "text", "done, diverged or infeasible"),
    Column("diverged", "boolean", "whether the training cost became NaN"),
    Column("input_id", "text", "equal for trials with the same raw hyperparameters"),
    Column("duplicates", "texts", "ids of the other trials of the same task and input"),
    Column("block", "text", "matched block in which the trial stands for its task and input; empty: none"),
    Column("y", "real", "warped objective, to be maximised; NaN where diverged or without a value"),
)


def columns(space: SearchSpace, metrics: Sequence[str], curves: Sequence[str]) -> tuple[Column, ...]:
    """The columns of trials over a search space, with the metrics and curves named."""
    return (
        *_IDENTITY,
        *(Column(f"hyperparameters.{name}", "real", f"raw {name}, as recorded") for name in space.names),
        *(Column(f"x.{name}", "real", f"{name} in [0, 1] by its declared range") for name in space.names),
        *(Column(f"metrics.{name}", "real", f"{name}; NaN: none") for name in metrics),
        *(Column(f"curves.{name}", "reals", f"{name} along global_step; empty: none") for name in curves),
    )


def tfds_features(columns: Sequence[Column]) -> tfds.features.FeaturesDict:
    """Columns as TFDS features: `<group>.<name>` becomes `{group: {name: ...}}`.

    A plain float64 feature would be stored as float32; bytes keep every bit.
    """

    def feature(column: Column) -> Any:
        match column.kind:
            case "text":
                return tfds.features.Text(doc=column.doc)
            case "texts":
                return tfds.features.Sequence(tfds.features.Text(), doc=column.doc)
            case "integer":
                return tfds.features.Scalar(np.int64, doc=column.doc)
            case "boolean":
                return tfds.features.Scalar(np.bool_, doc=column.doc)
            case "real":
                return tfds.features.Tensor(shape=(), dtype=np.float64, encoding="bytes", doc=column.doc)
            case "reals":
                return tfds.features.Tensor(shape=(None,), dtype=np.float64, encoding="bytes", doc=column.doc)

    return tfds.features.FeaturesDict(nest({column.name: feature(column) for column in columns}))


def to_example(record: Record, columns: Sequence[Column]) -> tuple[str, dict[str, Any]]:
    """A record as TFDS wants it: its key, and the nested example."""
    trial = record.trial
    values: dict[str, Any] = {
        column.name: getattr(trial, column.name) for column in _IDENTITY if hasattr(trial, column.name)
    }
    values |= {"duplicates": list(record.duplicates), "block": record.block, "y": record.y}
    names = tuple(trial.hyperparameters)
    values |= {f"hyperparameters.{name}": trial.hyperparameters[name] for name in names}
    values |= {f"x.{name}": value for name, value in zip(names, record.x, strict=True)}
    values |= {f"metrics.{name}": value for name, value in trial.metrics.items()}
    values |= {
        column.name: np.array(trial.curves.get(column.name.removeprefix("curves."), ()), np.float64)
        for column in columns
        if column.kind == "reals"
    }
    return trial.trial_id, nest(values)


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Group names at their first dot.

    >>> nest({"task": 1, "x.power": 2, "x.momentum": 3})
    {'task': 1, 'x': {'power': 2, 'momentum': 3}}
    """
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        group, dot, inner = name.partition(".")
        if dot:
            nested.setdefault(group, {})[inner] = value
        else:
            nested[name] = value
    return nested


def to_table(examples: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pa.Table:
    """Decoded TFDS examples as an Arrow table with one flat column each, bit for bit."""
    arrays = {}
    for column in columns:
        group, dot, inner = column.name.partition(".")
        values = [example[group][inner] if dot else example[group] for example in examples]
        arrays[column.name] = _to_array(values, column.kind)
    return pa.table(arrays)


def _to_array(values: list[Any], kind: Kind) -> pa.Array:
    match kind:
        case "text":
            return pa.array(values, pa.binary()).cast(pa.string())
        case "texts":
            return pa.array([list(value) for value in values], pa.list_(pa.binary())).cast(
                pa.list_(pa.string())
            )
        case "integer":
            return pa.array(np.array(values, np.int64))
        case "boolean":
            return pa.array(np.array(values, np.bool_))
        case "real":
            return pa.array(np.array(values, np.float64))
        case "reals":
            offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
            return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(values)))
