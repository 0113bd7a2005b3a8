"""What a benchmark prescribes besides its trials: the tasks of each split, and the first trials of a run."""

from __future__ import annotations

import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError
from hyperbo.storage.paths import StrPath
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import read_manifest
from pd1_builder.version.verification import parquet_files

COLUMN = "initialisations"


def tasks_of_splits(reference: str, data_dir: StrPath | None = None) -> dict[str, tuple[str, ...]]:
    """The tasks of each split of the version with a reference, sorted by name.

    Raises:
      NotAvailableError: the data folder does not hold the version.
    """
    manifest = read_manifest(find(reference, data_dir).folder)
    return {split: tuple(sorted(tasks)) for split, tasks in manifest.counts.items()}


def initialisations(
    reference: str, split: str, data_dir: StrPath | None = None
) -> dict[str, dict[str, tuple[str, ...]]]:
    """The official initialisations of the tasks of a split, as HPO-B defines them.

    Returns:
      By task and name of the initialisation, the ids of the trials that a run begins with, in their order.

    Raises:
      NotAvailableError: the data folder does not hold the version.
      VersionConflictError: a Parquet file is missing, or its size is not that of the manifest.
      InvalidInputError: the version has no such split, or its records have no initialisations.
    """
    folder = find(reference, data_dir).folder
    files = parquet_files(folder, read_manifest(folder))
    if split not in files or COLUMN not in pq.read_schema(files[split]).names:
        raise InvalidInputError(
            f"no {split!r} split with official initialisations",
            where=reference,
            fix="use a version of hpob, or another protocol",
        )
    table = pq.read_table(files[split], columns=["task", "trial_id", COLUMN])
    found: dict[str, dict[str, dict[int, str]]] = {}
    for task, trial, entries in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
        for entry in entries or ():
            name, _, position = entry.rpartition(":")
            found.setdefault(task, {}).setdefault(name, {})[int(position)] = trial
    return {
        task: {name: tuple(trials[at] for at in sorted(trials)) for name, trials in sorted(named.items())}
        for task, named in sorted(found.items())
    }
