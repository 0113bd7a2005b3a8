"""A version, read: as tuning data for the method, or as a DataFrame. Needs Parquet only."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.tuning_data import MatchedBlock, Provenance, Task, TuningData
from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest, read_manifest
from pd1_builder.preparations import Preparation
from pd1_builder.preparations import preparation as named_preparation

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)


@overload
def load(
    reference: str,
    preparation: str = ...,
    *,
    as_: Literal["tuning_data"] = ...,
    data_dir: Path | None = ...,
    skip_empty_tasks: bool = ...,
) -> TuningData: ...
@overload
def load(
    reference: str,
    preparation: str | None = ...,
    *,
    as_: Literal["dataframe"],
    data_dir: Path | None = ...,
) -> pd.DataFrame: ...
def load(
    reference: str,
    preparation: str | None = "paper",
    *,
    as_: Literal["tuning_data", "dataframe"] = "tuning_data",
    data_dir: Path | None = None,
    skip_empty_tasks: bool = False,
) -> TuningData | pd.DataFrame:
    """Read a version.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest there is.
      preparation: name of the reading. None, for a DataFrame only: every record as it is stored.
      as_: `tuning_data` for the method's arrays; `dataframe` for all columns, one row per trial.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      skip_empty_tasks: leave out, with a line in the log, tasks of which the preparation keeps no trial.

    Returns:
      Tasks sorted by name, and for every matched block found in the data the same inputs on all of its
      tasks, with `y` NaN where a task's trial has none. Or a DataFrame.

    Raises:
      NotAvailableError: there is no such version.
      VersionConflictError: the version's files are not those of its manifest.
      InvalidInputError: the preparation keeps no trial of a task, and `skip_empty_tasks` is not set.
    """
    version = find(reference, data_dir)
    manifest = read_manifest(version.folder)
    if as_ == "dataframe":
        table = _read(version.folder, manifest, None)
        if preparation is not None:
            chosen = named_preparation(preparation)
            kept = _in_phases(table, chosen) & np.isfinite(table["y"].to_numpy())
            table = table.filter(pa.array(kept))
        return table.to_pandas()
    if as_ != "tuning_data":
        raise InvalidInputError(f"as_ is {as_!r}", fix="use tuning_data or dataframe")
    if preparation is None:
        raise InvalidInputError(
            "tuning data needs a preparation", where=reference, fix="name one, such as paper"
        )
    return _tuning_data(version.folder, manifest, named_preparation(preparation), skip_empty_tasks)


def _read(folder: Path, manifest: Manifest, columns: list[str] | None) -> pa.Table:
    recorded = {file.name: file.size for file in manifest.files}
    tables = []
    for split in manifest.counts:
        path = folder / f"{split}.parquet"
        size = path.stat().st_size if path.exists() else None
        if size is None or size != recorded.get(path.name):
            raise VersionConflictError(
                f"{path} has {size} bytes, not the {recorded.get(path.name)} of the manifest; "
                f"remove {folder} and build {manifest.reference} again"
            )
        table = pq.read_table(path, columns=columns)
        label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int8)), pa.array([split]))
        tables.append(table.add_column(0, "split", label.cast(pa.string())))
    return pa.concat_tables(tables)


def _in_phases(table: pa.Table, preparation: Preparation) -> np.ndarray:
    return np.isin(table["phase"].to_numpy(), preparation.phases)


def _tuning_data(
    folder: Path, manifest: Manifest, preparation: Preparation, skip_empty_tasks: bool
) -> TuningData:
    space = manifest.space
    objective = f"metrics.{manifest.parameters['objective']}"
    inputs = [f"x.{name}" for name in space.names]
    names = ["task", "task_dataset", "trial_id", "phase", "input_id", "block", "y", objective, *inputs]
    table = _read(folder, manifest, names)
    table = table.filter(pa.array(_in_phases(table, preparation)))
    x = np.stack([table[name].to_numpy() for name in inputs], axis=1)
    y = table["y"].to_numpy()

    tasks = []
    coded = table["task"].combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    code_of = {name: code for code, name in enumerate(coded.dictionary.to_pylist())}
    kept = np.isfinite(y)
    # Every task recorded, not only those that the phases left: none goes missing without a word.
    for name in sorted({task for tasks in manifest.counts.values() for task in tasks}):
        rows = np.flatnonzero(kept & (codes == code_of.get(name, -1)))
        if len(rows) == 0:
            _empty_task(manifest, preparation, name, skip_empty_tasks)
            continue
        chosen = table.take(rows)
        tasks.append(
            Task(
                name=name,
                dataset=chosen["task_dataset"][0].as_py(),
                x=x[rows],
                y=y[rows],
                objective=chosen[objective].to_numpy(),
                trial_ids=tuple(chosen["trial_id"].to_pylist()),
            )
        )
    if not tasks:
        raise InvalidInputError(
            f"the preparation {preparation.name!r} keeps no trial of any task", where=manifest.reference
        )
    present = {task.name for task in tasks}
    blocks = tuple(
        block
        for listed in manifest.blocks
        if listed["phase"] in preparation.phases
        and (block := _block(table, x, y, listed["id"], present)) is not None
    )
    provenance = Provenance(manifest.reference, manifest.content_hash, preparation.name)
    return TuningData(space, tuple(tasks), blocks, provenance)


def _empty_task(manifest: Manifest, preparation: Preparation, name: str, skip: bool) -> None:
    statuses: dict[str, int] = {}
    for tasks in manifest.counts.values():
        for status, count in tasks.get(name, {}).items():
            statuses[status] = statuses.get(status, 0) + count
    what = (
        f"task {name!r}: the preparation {preparation.name!r} keeps none of its trials "
        f"({', '.join(f'{count} {status}' for status, count in sorted(statuses.items()))})"
    )
    if not skip:
        raise InvalidInputError(
            what, where=manifest.reference, fix="pass skip_empty_tasks=True to leave it out"
        )
    _LOGGER.warning("%s: %s; left out", manifest.reference, what)


def _block(
    table: pa.Table, x: np.ndarray, y: np.ndarray, block_id: str, present: set[str]
) -> MatchedBlock | None:
    """Lay one block out as inputs by tasks; None where fewer than two tasks are left."""
    rows = np.flatnonzero(table["block"].to_numpy() == block_id)
    chosen = table.select(["task", "input_id"]).take(rows)
    task_of, input_of = np.array(chosen["task"].to_pylist()), np.array(chosen["input_id"].to_pylist())
    tasks, column = np.unique(task_of, return_inverse=True)
    inputs, first, row = np.unique(input_of, return_index=True, return_inverse=True)
    values = np.full((len(inputs), len(tasks)), np.nan)
    values[row, column] = y[rows]
    keep = [i for i, name in enumerate(tasks) if name in present]
    if len(keep) < 2:
        return None
    return MatchedBlock(tuple(str(tasks[i]) for i in keep), x[rows][first], values[:, keep])
