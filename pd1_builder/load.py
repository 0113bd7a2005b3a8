"""A version, read: as tuning data for the method, or as a DataFrame. Needs Parquet only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.tuning_data import Provenance, TuningData
from pd1_builder.arrays import lay_out_blocks, lay_out_tasks
from pd1_builder.catalog import Version, find, find_here
from pd1_builder.distribution import pulling
from pd1_builder.manifest import Manifest, read_manifest
from pd1_builder.preparations import Preparation, Prepared, prepare
from pd1_builder.preparations import preparation as named_preparation
from pd1_builder.pulled import check_revision, was_pulled
from pd1_builder.verification import parquet_files

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)


@overload
def load(
    reference: str,
    preparation: str | None = ...,
    *,
    as_: Literal["tuning_data"] = ...,
    data_dir: Path | None = ...,
    source: str | Path | Sequence[str | Path] = ...,
    revision: str | None = ...,
    skip_empty_tasks: bool = ...,
) -> TuningData: ...
@overload
def load(
    reference: str,
    preparation: str | None = ...,
    *,
    as_: Literal["dataframe"],
    data_dir: Path | None = ...,
    source: str | Path | Sequence[str | Path] = ...,
    revision: str | None = ...,
) -> pd.DataFrame: ...
def load(
    reference: str,
    preparation: str | None = None,
    *,
    as_: Literal["tuning_data", "dataframe"] = "tuning_data",
    data_dir: Path | None = None,
    source: str | Path | Sequence[str | Path] = (),
    revision: str | None = None,
    skip_empty_tasks: bool = False,
) -> TuningData | pd.DataFrame:
    """Read a version; where it is not here, and a place to pull it from is known, pull it first.

    Args:
      reference: `<name>/<config>:<version>`; without a version, the newest that is here, or else the newest
        that is published.
      preparation: name of the reading, one of `preparations.PREPARATIONS`. None: for tuning data `paper` for
        pd1 and `observed` for other datasets; for a DataFrame every record as it is stored.
      as_: `tuning_data` for the method's arrays; `dataframe` for all columns, one row per trial.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      source: places to pull it from where it is not here, as `distribution.pulling.pull` takes them; none:
        those of `$HYPERBO_DATA_SOURCES`, and without these no network is used.
      revision: SHA-256 that its manifest must have; its files are checked then. None for any.
      skip_empty_tasks: leave out, with a line in the log, tasks of which the preparation keeps no trial.

    Returns:
      Tasks sorted by name, and for every matched block found in the data the same inputs on all of its
      tasks, with `y` NaN where a task's trial has none. Or a DataFrame; under a preparation it has the trials
      that are in tasks, `y` and the metric of the objective as the preparation reads them.

    Raises:
      NotAvailableError: there is no such version.
      VersionConflictError: the version's files are not those of its manifest, or it has another revision.
      InvalidInputError: the preparation keeps no trial of a task and `skip_empty_tasks` is not set; or it is
        no reading of this dataset, or needs columns that are not there; or tuning data was asked of a version
        that spans several search spaces.
    """
    if as_ not in ("tuning_data", "dataframe"):
        raise InvalidInputError(f"as_ is {as_!r}", fix="use tuning_data or dataframe")
    version = _found(reference, data_dir, source, revision)
    chosen = named_preparation(preparation, version.dataset)
    manifest = read_manifest(version.folder)
    files = parquet_files(version.folder, manifest)
    _require_columns(files, manifest, chosen)
    if as_ == "tuning_data":
        return _tuning_data(files, manifest, chosen, skip_empty_tasks)
    if preparation is None:
        return _read(files).to_pandas()
    return _dataframe(files, manifest, chosen)


def _found(
    reference: str, data_dir: Path | None, source: str | Path | Sequence[str | Path], revision: str | None
) -> Version:
    check_revision(revision)
    here = find_here(reference, data_dir)
    if here is None:
        if source or pulling.configured_sources():
            return pulling.pull(reference, source, data_dir=data_dir, revision=revision)
        return find(reference, data_dir)  # Says what to do.
    # Whoever built a version trusts it.
    key = pulling.trusted_key(None) if was_pulled(here.folder) else None
    pulling.hold(here, revision, key)
    return here


def _require_columns(files: Mapping[str, Path], manifest: Manifest, preparation: Preparation) -> None:
    for path in files.values():
        with _explaining_damage(path):
            missing = set(preparation.columns()) - {"split", *pq.read_schema(path).names}
        if missing:
            raise InvalidInputError(
                f"the preparation {preparation.name!r} needs the columns {', '.join(sorted(missing))}",
                where=manifest.reference,
                fix="load a config that has them, or choose another preparation",
            )


@contextmanager
def _explaining_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise VersionConflictError(f"{path} is damaged ({error}); hyperbo data verify says more") from error


def _read(files: Mapping[str, Path], columns: Sequence[str] | None = None) -> pa.Table:
    """The records of all splits: `split`, and all of their columns or those named."""
    tables = []
    for split, path in files.items():
        with _explaining_damage(path):
            table = pq.read_table(path, columns=columns)
        label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int8)), pa.array([split]))
        tables.append(table.add_column(0, "split", label.cast(pa.string())))
    return pa.concat_tables(tables)


def _objective(manifest: Manifest) -> str:
    return f"metrics.{manifest.parameters['objective']}"


def _dataframe(files: Mapping[str, Path], manifest: Manifest, preparation: Preparation) -> pd.DataFrame:
    table = _read(files)
    prepared = _prepare(table, manifest, preparation)
    table = prepared.table
    for name, values in ((_objective(manifest), prepared.objective), ("y", prepared.y)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.filter(pa.array(np.isfinite(prepared.y))).to_pandas()


def _prepare(table: pa.Table, manifest: Manifest, preparation: Preparation) -> Prepared:
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
    inputs = [f"x.{name}" for name in space.names]
    columns = ["task", "task_dataset", "trial_id", "phase", "y", _objective(manifest), *inputs]
    columns += ["input_id", "block"] if manifest.blocks else []
    table = _read(files, sorted({*columns, *preparation.columns()} - {"split"}))
    prepared = _prepare(table, manifest, preparation)
    x = np.stack([prepared.table[name].to_numpy() for name in inputs], axis=1)
    tasks = tuple(lay_out_tasks(prepared, x))
    if not tasks and skip_empty_tasks:
        raise InvalidInputError(
            f"the preparation {preparation.name!r} keeps no trial of any task", where=manifest.reference
        )
    present = {task.name for task in tasks}
    # Every task recorded, not only those that the preparation left: none goes missing without a word.
    for name in sorted({task for tasks in manifest.counts.values() for task in tasks} - present):
        _empty_task(manifest, preparation, name, skip_empty_tasks)
    blocks = tuple(lay_out_blocks(prepared, x, [block["id"] for block in manifest.blocks], present))
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
