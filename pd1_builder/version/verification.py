"""Verification of a version, without TFDS or Beam: its files, its records, and what its manifest states."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hyperbo_pipelines.curate.hyperparameters import codes_of
from hyperbo_pipelines.curate.parquet import read_row_groups, without_nulls

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import output_warping
from hyperbo.errors import VersionConflictError
from hyperbo.storage.paths import StrPath
from pd1_builder.version.advice import remedy
from pd1_builder.version.catalog import find
from pd1_builder.version.content_hash import content_hash
from pd1_builder.version.manifest import (
    MANIFEST_NAME,
    SIGNATURE_NAME,
    FileDigest,
    Manifest,
    declared,
    digest_file,
    read_manifest,
)

# The logarithms of two platforms may differ in the last bits. This is why the content hash leaves out x and
# y.
_TOLERANCE = 1e-9
_ROWS_AT_ONCE = 1 << 16
_RELATIONS = ("task", "status", "block", "phase", "input_id", "duplicates")


def verify(reference: str, data_dir: StrPath | None = None) -> Manifest:
    """Check a version against its manifest: the hashes of files and of records, and all derived values.

    Args:
      reference: `<name>/<config>:<version>`.
      data_dir: the data folder; None for `catalog.default_data_dir`.

    Returns:
      The manifest.

    Raises:
      NotAvailableError: the data folder does not hold the version.
      VersionConflictError: a file is missing, unknown or changed, or the manifest states something else about
        the records than they hold.
    """
    found = find(reference, data_dir)
    return verify_folder(found.folder, found.dataset, found.version)


def verify_folder(folder: Path, dataset: str, version: str) -> Manifest:
    """Check the version in a folder, `<name>/<config>` and its number, as `verify` does.

    Returns:
      The manifest.

    Raises:
      NotAvailableError: the folder holds no manifest.
      VersionConflictError: the folder holds another version; or a file is missing, unknown or changed; or the
        manifest states something else about the records than they hold.
    """
    advice = remedy(folder, dataset, version)
    manifest = read_manifest(folder)
    if (manifest.dataset, manifest.version) != (dataset, version):
        raise VersionConflictError(f"{folder} holds {manifest.reference}; {advice}")
    check_files(folder, manifest)
    tables = {split: read_row_groups(folder / f"{split}.parquet") for split in manifest.counts}
    if content_hash(declared(manifest.space, manifest.parameters), tables) != manifest.content_hash:
        raise VersionConflictError(f"the records in {folder} are not those of its content hash; {advice}")
    check_derived(folder, manifest)
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Check the files of a version by size and SHA-256, without reading the records.

    Raises:
      VersionConflictError: files are missing, unknown or changed; the message names the first of them.
    """
    found = {file.name: file for file in files_of(folder)}
    expected = {file.name: file for file in manifest.files}
    wrong = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    if wrong:
        name = wrong[0]
        state = (
            "is missing"
            if name not in found
            else "has changed"
            if name in expected
            else "is not a file of the version"
        )
        others = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        advice = remedy(folder, manifest.dataset, manifest.version)
        raise VersionConflictError(f"{folder / name} {state}{others}; {advice}")


def parquet_files(folder: Path, manifest: Manifest) -> dict[str, Path]:
    """The Parquet file of each split.

    Raises:
      VersionConflictError: a file is missing, or its size is not that of the manifest.
    """
    recorded = {file.name: file.size for file in manifest.files}
    paths = {split: folder / f"{split}.parquet" for split in manifest.counts}
    for path in paths.values():
        size = path.stat().st_size if path.exists() else None
        if size is None or size != recorded.get(path.name):
            raise VersionConflictError(
                f"{path} has {size} bytes, not the {recorded.get(path.name)} of the manifest; "
                f"{remedy(folder, manifest.dataset, manifest.version)}"
            )
    return paths


def files_of(folder: Path) -> tuple[FileDigest, ...]:
    """The files of a version except its manifest and the manifest's signature, sorted by name.

    Raises:
      VersionConflictError: one of them is a symbolic link, which may lead to a file outside the version.
    """
    not_listed = (folder / MANIFEST_NAME, folder / SIGNATURE_NAME)
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_symlink():
            raise VersionConflictError(f"{path} is a symbolic link; put the file in its place")
    return tuple(digest_file(path, folder) for path in paths if path.is_file() and path not in not_listed)


@dataclass
class _Block:
    phase: int
    tasks: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)


def check_derived(folder: Path, manifest: Manifest) -> None:
    """Compute x, y, the counts and the matched blocks again from the raw values, and compare.

    Raises:
      VersionConflictError: a value differs; the message names it and its file.
    """
    advice = remedy(folder, manifest.dataset, manifest.version)
    counts: dict[str, dict[str, dict[str, int]]] = {split: {} for split in manifest.counts}
    blocks: dict[str, _Block] = {}
    duplicates = rounded = 0
    for split in manifest.counts:
        path = folder / f"{split}.parquet"
        with pq.ParquetFile(path) as file:
            objective = f"metrics.{manifest.parameters['objective']}"
            inputs = [
                name for name in file.schema_arrow.names if name.split(".")[0] in ("hyperparameters", "x")
            ]
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[*_RELATIONS, "y", objective, *inputs]):
                table = without_nulls(pa.Table.from_batches([batch]))
                if wrong := _wrong_column(table, manifest, table[objective].to_numpy()):
                    raise VersionConflictError(
                        f"{path}: column {wrong} does not follow from the raw values, the search space and "
                        f"the warping; {advice}"
                    )
                count_records(table, counts[split])
                _gather_blocks(table, blocks)
                duplicates += count_duplicates(table)
                rounded += count_rounded(table, manifest.space)
    listed = {
        name: {"id": name, "phase": block.phase, "tasks": sorted(block.tasks), "inputs": len(block.inputs)}
        for name, block in blocks.items()
    }
    for name, stated, found in (
        ("counts", manifest.counts, counts),
        ("duplicates", manifest.duplicates, duplicates),
        ("rounded", manifest.rounded, rounded),
        ("blocks", {block["id"]: block for block in manifest.blocks}, listed),
    ):
        if stated != found:
            raise VersionConflictError(
                f"{folder}: the {name} of the manifest are not those of the records; {advice}"
            )


def _wrong_column(table: pa.Table, manifest: Manifest, objective: np.ndarray) -> str | None:
    space = manifest.space
    done = np.array(table["status"].to_pylist()) == "done"
    y = np.full(len(objective), np.nan)
    measured = done & np.isfinite(objective)
    y[measured] = output_warping(manifest.parameters["warping"]).warp(objective[measured])
    derived = {"y": y}
    if space is None:  # Inputs of several search spaces are stored as lists, already in the unit cube.
        stored = {"x": table["x"].combine_chunks().flatten().to_numpy()}
        derived["x"] = table["hyperparameters"].combine_chunks().flatten().to_numpy()
    else:
        unit = space.to_unit(codes_of(table, space))
        derived |= {f"x.{name}": unit[:, column] for column, name in enumerate(space.columns)}
        stored = {f"x.{name}": table[f"x.{name}"].to_numpy() for name in space.columns}
    stored["y"] = table["y"].to_numpy()
    for name, values in derived.items():
        if values.shape != stored[name].shape or not np.allclose(
            stored[name], values, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True
        ):
            return name
    return None


def count_records(table: pa.Table, counts: dict[str, dict[str, int]]) -> None:
    """Add the records of a table to counts by task and status."""
    for group in table.group_by(["task", "status"]).aggregate([([], "count_all")]).to_pylist():
        statuses = counts.setdefault(group["task"], {})
        statuses[group["status"]] = statuses.get(group["status"], 0) + group["count_all"]


def count_duplicates(table: pa.Table) -> int:
    """Number of records whose input occurs more than once in their task."""
    lengths: Any = table["duplicates"].combine_chunks().value_lengths()
    return int((lengths.to_numpy() > 0).sum())


def count_rounded(table: pa.Table, space: SearchSpace | None) -> int:
    """Number of records with a raw value outside of its declared range: a rounding, or it were no record."""
    return 0 if space is None else int(space.outside(codes_of(table, space)).sum())


def _gather_blocks(table: pa.Table, blocks: dict[str, _Block]) -> None:
    for group in table.group_by(["block", "phase", "task", "input_id"]).aggregate([]).to_pylist():
        if group["block"]:
            block = blocks.setdefault(group["block"], _Block(group["phase"]))
            block.tasks.add(group["task"])
            block.inputs.add(group["input_id"])
