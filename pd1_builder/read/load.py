"""Reading a version: as tuning data for a method, or as a DataFrame. It needs neither TFDS nor Beam."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import pyarrow as pa
from hyperbo_pipelines.curate.parquet import without_nulls
from jaxtyping import Float64

from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.storage.paths import StrPath
from pd1_builder.distribution.pull import check_local, configured_places, pull, trusted_key
from pd1_builder.read.preparations import Preparation, PreparedTrials, find_preparation, prepare, sorted_codes
from pd1_builder.read.tables import read_records, require_columns
from pd1_builder.version.catalog import Version, find, find_here, parse_reference
from pd1_builder.version.manifest import Manifest, read_manifest
from pd1_builder.version.pull_record import check_revision, was_pulled
from pd1_builder.version.verification import parquet_files

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)


@overload
def load(
    reference: str,
    preparation: str | None = ...,
    *,
    as_: Literal["tuning_data"] = ...,
    data_dir: StrPath | None = ...,
    source: StrPath | Sequence[StrPath] = ...,
    revision: str | None = ...,
    skip_empty_tasks: bool = ...,
) -> TuningData: ...
@overload
def load(
    reference: str,
    preparation: str | None = ...,
    *,
    as_: Literal["dataframe"],
    data_dir: StrPath | None = ...,
    source: StrPath | Sequence[StrPath] = ...,
    revision: str | None = ...,
) -> pd.DataFrame: ...
def load(
    reference: str,
    preparation: str | None = None,
    *,
    as_: Literal["tuning_data", "dataframe"] = "tuning_data",
    data_dir: StrPath | None = None,
    source: StrPath | Sequence[StrPath] = (),
    revision: str | None = None,
    skip_empty_tasks: bool = False,
) -> TuningData | pd.DataFrame:
    """Read a version. If it is not in the data folder and a place is known, pull it first.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest one in the data folder, else the
        newest one at a place.
      preparation: name of the preparation, one of `preparations.PREPARATIONS`. None: for tuning data, `paper`
        for pd1 and `observed` for other datasets; for a DataFrame, every record as it is stored.
      as_: `tuning_data` for the arrays of a method; `dataframe` for all columns, one row per trial.
      data_dir: the data folder; None for `catalog.default_data_dir`.
      source: places to pull the version from, as `distribution.pull.pull` takes them. None are the places of
        `$HYPERBO_DATA_SOURCES`; if that is not set either, no network is used.
      revision: revision that the version must have; its files are then checked. None for any.
      skip_empty_tasks: leave out tasks of which the preparation keeps no trial, with a line in the log.

    Returns:
      Tuning data: the tasks, sorted by name, and every matched block, which has the same inputs on all of its
      tasks and NaN for a `y` that a trial does not have. Or a DataFrame; with a preparation it contains the
      trials that have a value, with `y` and the metric of the objective as the preparation reads them.

    Raises:
      NotAvailableError: neither the data folder nor a place has the version.
      VersionConflictError: the version's files are not those of its manifest, or it has another revision.
      InvalidInputError: the preparation keeps no trial of a task and `skip_empty_tasks` is not set; or the
        preparation cannot read this dataset, or needs columns that it does not have; or the version spans
        several search spaces, which tuning data cannot.
    """
    if as_ not in ("tuning_data", "dataframe"):
        raise InvalidInputError(f"as_ is {as_!r}", fix="use tuning_data or dataframe")
    if as_ == "dataframe":
        return load_frame(reference, preparation, data_dir=data_dir, source=source, revision=revision)
    return _tuning_data(*_opened(reference, preparation, data_dir, source, revision), skip_empty_tasks)


def load_frame(
    reference: str,
    preparation: str | None = None,
    *,
    data_dir: StrPath | None = None,
    source: StrPath | Sequence[StrPath] = (),
    revision: str | None = None,
) -> pd.DataFrame:
    """Read a version as a DataFrame, one row for each trial.

    Its columns, of which the version's card describes each:

    - `split`, `task`, `task_dataset`, `trial_id`, `phase`, `status`, `diverged`: what the trial is
    - `hyperparameters.<name>`: the values that were trained with; `x.<name>`: the same in the unit cube
    - `metrics.<name>`: the results as recorded; `curves.<name>`: arrays along the training, where it has them
    - `y`: the objective, warped, to be maximised; NaN where the trial diverged or has no value
    - `input_id`, `block`, `duplicates`: which trials share their input; `origin`, `source`: where it is from

    The names of PD1 are those of its release, such as `metrics.best_valid/error_rate`.

    Args:
      reference: as in `load`, such as `pd1/mini:1.0.0`.
      preparation: as in `load`; None: every record as it is stored.
      data_dir: as in `load`.
      source: as in `load`.
      revision: as in `load`.

    Raises:
      NotAvailableError: as in `load`. The message says how to build the version. For PD1 itself, which is
        `pd1/release`, the build downloads its archive.
      VersionConflictError: as in `load`.
      InvalidInputError: as in `load`.

    >>> frame = load_frame("pd1/mini:1.0.0")  # doctest: +SKIP
    >>> frame.groupby("task")["metrics.best_valid/error_rate"].min()  # doctest: +SKIP
    """
    files, manifest, chosen = _opened(reference, preparation, data_dir, source, revision)
    return read_records(files).to_pandas() if preparation is None else _dataframe(files, manifest, chosen)


def _opened(
    reference: str,
    preparation: str | None,
    data_dir: StrPath | None,
    source: StrPath | Sequence[StrPath],
    revision: str | None,
) -> tuple[Mapping[str, Path], Manifest, Preparation]:
    """The files of a version, which is pulled where it is not here; its manifest; its preparation."""
    version = _find_or_pull(reference, data_dir, source, revision)
    chosen = find_preparation(preparation, version.dataset)
    manifest = read_manifest(version.folder)
    files = parquet_files(version.folder, manifest)
    require_columns(files, manifest, chosen)
    return files, manifest, chosen


def _find_or_pull(
    reference: str, data_dir: StrPath | None, source: StrPath | Sequence[StrPath], revision: str | None
) -> Version:
    check_revision(revision)
    here = find_here(reference, data_dir)
    if here is not None and not parse_reference(reference)[1]:
        newest = f"{here.dataset}:{here.version}"
        _LOGGER.warning("%s names no version: taken is the newest in the data folder, %s", reference, newest)
    if here is None:
        if source or configured_places():
            return pull(reference, source, data_dir=data_dir, revision=revision)
        return find(reference, data_dir)  # Raises an error that says what to do.
    # A version that was built here is trusted.
    key = trusted_key(None) if was_pulled(here.folder) else None
    check_local(here, revision, key)
    return here


def _objective(manifest: Manifest) -> str:
    return f"metrics.{manifest.parameters['objective']}"


def _dataframe(files: Mapping[str, Path], manifest: Manifest, preparation: Preparation) -> pd.DataFrame:
    table = without_nulls(read_records(files))
    prepared = _prepare(table, manifest, preparation)
    table = prepared.table
    for name, values in ((_objective(manifest), prepared.objective), ("y", prepared.y)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.filter(pa.array(np.isfinite(prepared.y))).to_pandas()


def _prepare(table: pa.Table, manifest: Manifest, preparation: Preparation) -> PreparedTrials:
    return prepare(table, preparation, _objective(manifest), manifest.parameters["warping"])


def _tuning_data(
    files: Mapping[str, Path], manifest: Manifest, preparation: Preparation, skip_empty_tasks: bool
) -> TuningData:
    space = manifest.space
    if space is None:
        raise InvalidInputError(
            "spans several search spaces",
            where=manifest.reference,
            fix=f"load {manifest.dataset.partition('/')[0]}/<search space>, or as_='dataframe'",
        )
    inputs = [f"x.{name}" for name in space.columns]
    columns = ["task", "task_dataset", "trial_id", "phase", "y", _objective(manifest), *inputs]
    columns += ["input_id", "block"] if manifest.blocks else []
    table = without_nulls(read_records(files, sorted({*columns, *preparation.columns()} - {"split"})))
    prepared = _prepare(table, manifest, preparation)
    x = np.stack([prepared.table[name].to_numpy() for name in inputs], axis=1)
    tasks = tuple(_lay_out_tasks(prepared, x))
    if not tasks and skip_empty_tasks:
        raise InvalidInputError(
            f"the preparation {preparation.name!r} keeps no trial of any task", where=manifest.reference
        )
    present = {task.name for task in tasks}
    # All tasks of the version, not only those with trials left: a missing task is always reported.
    for name in sorted({task for tasks in manifest.counts.values() for task in tasks} - present):
        _empty_task(manifest, preparation, name, skip_empty_tasks)
    blocks = tuple(_lay_out_blocks(prepared, x, [block["id"] for block in manifest.blocks], present))
    provenance = Provenance(manifest.reference, manifest.content_hash, preparation.name)
    return TuningData(space, tasks, blocks, provenance)


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


def _lay_out_tasks(prepared: PreparedTrials, x: Float64[np.ndarray, "n d"]) -> Iterator[Task]:
    """The tasks that have a trial with a value, by name, each with these trials; `x` are all inputs."""
    codes, tasks = sorted_codes(prepared.table["task"])
    trial_ids = prepared.table["trial_id"].to_numpy()
    observed = np.flatnonzero(np.isfinite(prepared.y))
    for name, in_task in zip(tasks.to_pylist(), _grouped(codes[observed], len(tasks)), strict=True):
        rows = observed[in_task]
        if len(rows):
            yield Task(
                name=name,
                dataset=prepared.table["task_dataset"][int(rows[0])].as_py(),
                x=x[rows],
                y=prepared.y[rows],
                objective=prepared.objective[rows],
                trial_ids=tuple(trial_ids[rows]),
            )


def _lay_out_blocks(
    prepared: PreparedTrials, x: Float64[np.ndarray, "n d"], block_ids: Sequence[str], tasks: Collection[str]
) -> Iterator[MatchedBlock]:
    """The blocks, in order, of which at least two of the tasks are left. `y` is NaN without a value."""
    if not block_ids:
        return
    block_codes, known = sorted_codes(prepared.table["block"])
    groups = dict(zip(known.to_pylist(), _grouped(block_codes, len(known)), strict=True))
    input_codes, _ = sorted_codes(prepared.table["input_id"])
    task_codes, coded_tasks = sorted_codes(prepared.table["task"])
    names = coded_tasks.to_pylist()
    wanted = np.array([name in tasks for name in names], bool)
    for block_id in block_ids:
        rows = groups.get(block_id, np.empty(0, np.int64))
        columns, column = np.unique(task_codes[rows], return_inverse=True)
        keep = wanted[columns]
        if keep.sum() < 2:
            continue
        inputs, first, row = np.unique(input_codes[rows], return_index=True, return_inverse=True)
        values = np.full((len(inputs), len(columns)), np.nan)
        values[row, column] = prepared.y[rows]
        yield MatchedBlock(tuple(names[code] for code in columns[keep]), x[rows[first]], values[:, keep])


def _grouped(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """The rows of each code below `count`, in ascending order."""
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(np.argsort(codes, kind="stable"), ends)[:-1]
