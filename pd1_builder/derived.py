"""What a version states beside its raw values, computed again: x, y, counts, duplicates, matched blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import VersionConflictError
from hyperbo.warping import output_warping
from pd1_builder.catalog import remedy
from pd1_builder.manifest import Manifest

# Logarithms of two platforms may differ in the last bits, which is why the content hash leaves x and y out.
_TOLERANCE = 1e-9
_ROWS_AT_ONCE = 1 << 16
_RELATIONS = ("task", "status", "block", "phase", "input_id", "duplicates")


@dataclass
class _Block:
    phase: int
    tasks: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)


def check_derived(folder: Path, manifest: Manifest) -> None:
    """Compare what a version states about its records with what its raw values give.

    Raises:
      VersionConflictError: names what differs and in which file.
    """
    advice = remedy(folder, manifest.dataset, manifest.version)
    counts: dict[str, dict[str, dict[str, int]]] = {split: {} for split in manifest.counts}
    blocks: dict[str, _Block] = {}
    duplicates = 0
    for split in manifest.counts:
        path = folder / f"{split}.parquet"
        with pq.ParquetFile(path) as file:
            objective = f"metrics.{manifest.parameters['objective']}"
            inputs = [
                name for name in file.schema_arrow.names if name.split(".")[0] in ("hyperparameters", "x")
            ]
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[*_RELATIONS, "y", objective, *inputs]):
                table = pa.Table.from_batches([batch])
                if wrong := _wrong_column(table, manifest, table[objective].to_numpy()):
                    raise VersionConflictError(
                        f"{path}: column {wrong} is not what the raw values, the search space and the "
                        f"warping give; {advice}"
                    )
                count_records(table, counts[split])
                _gather_blocks(table, blocks)
                duplicates += count_duplicates(table)
    listed = {
        name: {"id": name, "phase": block.phase, "tasks": sorted(block.tasks), "inputs": len(block.inputs)}
        for name, block in blocks.items()
    }
    for name, stated, found in (
        ("counts", manifest.counts, counts),
        ("duplicates", manifest.duplicates, duplicates),
        ("blocks", {block["id"]: block for block in manifest.blocks}, listed),
    ):
        if stated != found:
            raise VersionConflictError(
                f"{folder}: the {name} of the manifest are not those of its records; {advice}"
            )


def _wrong_column(table: pa.Table, manifest: Manifest, objective: np.ndarray) -> str | None:
    space = manifest.space
    done = np.array(table["status"].to_pylist()) == "done"
    y = np.full(len(objective), np.nan)
    measured = done & np.isfinite(objective)
    y[measured] = output_warping(manifest.parameters["warping"]).warp(objective[measured])
    derived = {"y": y}
    if space is None:  # The inputs of several spaces are stored as lists, in the unit cube as recorded.
        stored = {"x": table["x"].combine_chunks().flatten().to_numpy()}
        derived["x"] = table["hyperparameters"].combine_chunks().flatten().to_numpy()
    else:
        raw = np.stack([table[f"hyperparameters.{name}"].to_numpy() for name in space.names], axis=1)
        unit = space.to_unit(raw)
        derived |= {f"x.{name}": unit[:, column] for column, name in enumerate(space.names)}
        stored = {f"x.{name}": table[f"x.{name}"].to_numpy() for name in space.names}
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
    """Number of records whose task ran their input more than once."""
    lengths: Any = table["duplicates"].combine_chunks().value_lengths()
    return int((lengths.to_numpy() > 0).sum())


def _gather_blocks(table: pa.Table, blocks: dict[str, _Block]) -> None:
    for group in table.group_by(["block", "phase", "task", "input_id"]).aggregate([]).to_pylist():
        if group["block"]:
            block = blocks.setdefault(group["block"], _Block(group["phase"]))
            block.tasks.add(group["task"])
            block.inputs.add(group["input_id"])
