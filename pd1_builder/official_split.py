"""What a benchmark prescribes beside its trials: which tasks are learned from, and where runs begin."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from hyperbo.errors import InvalidInputError
from pd1_builder.catalog import find
from pd1_builder.manifest import read_manifest
from pd1_builder.verification import parquet_files

COLUMN = "initialisations"


def tasks_of_splits(reference: str, data_dir: Path | None = None) -> dict[str, tuple[str, ...]]:
    """The tasks of each split of a version, sorted.

    Args:
      reference: `<name>/<config>:<version>`.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.

    Raises:
      NotAvailableError: there is no such version.
    """
    manifest = read_manifest(find(reference, data_dir).folder)
    return {split: tuple(sorted(tasks)) for split, tasks in manifest.counts.items()}


def initialisations(
    reference: str, split: str, data_dir: Path | None = None
) -> dict[str, dict[str, tuple[str, ...]]]:
    """The official initialisations of the tasks of a split, as HPO-B gives them.

    Args:
      reference: `<name>/<config>:<version>`.
      split: the split.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.

    Returns:
      By task and name of the initialisation, in their order, the trials to begin with.

    Raises:
      NotAvailableError: there is no such version.
      InvalidInputError: the version has no such split, or its records name no initialisation.
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
    for task, trial, places in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
        for place in places or ():
            name, _, position = place.rpartition(":")
            found.setdefault(task, {}).setdefault(name, {})[int(position)] = trial
    return {
        task: {name: tuple(trials[at] for at in sorted(trials)) for name, trials in sorted(named.items())}
        for task, named in sorted(found.items())
    }
