"""The columns that all curated records have, and columns as Arrow schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import pyarrow as pa

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
OBJECTIVE = Column(
    "y", "real", "warped objective, to be maximised; missing where diverged or without a value"
)
_DOC = b"description"
# An input may be run thousands of times: naming all ids with every trial would take millions.
MOST_DUPLICATES = 16
# The one order of records within a split, in which they are hashed and stored.
CANONICAL_ORDER = ("task", "phase", "trial_id")


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
