"""What a version states beside its raw values, computed again: inputs, y, counts, matched blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.errors import VersionConflictError
from hyperbo.warping import output_warping
from pd1_builder.manifest import Manifest

# Logarithms of two platforms may differ in the last bits, which is why the content hash leaves x and y out.
_TOLERANCE = 1e-9


def check_derived(folder: Path, manifest: Manifest) -> None:
    """Compare a version's `x`, `y`, counts and matched blocks with what its raw values give.

    Raises:
      VersionConflictError: names what differs and in which file.
    """
    space = manifest.space
    objective = f"metrics.{manifest.parameters['objective']}"
    raw = [f"hyperparameters.{name}" for name in space.names]
    derived = [f"x.{name}" for name in space.names]
    counts: dict[str, dict[str, dict[str, int]]] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for split in manifest.counts:
        path = folder / f"{split}.parquet"
        columns = ["task", "status", "diverged", "block", "phase", "input_id", "y", objective, *raw, *derived]
        table = pq.read_table(path, columns=columns)
        values = {name: table[name].to_numpy() for name in ("y", objective, *raw, *derived)}
        x = space.to_unit(np.stack([values[name] for name in raw], axis=1))
        y = output_warping(manifest.parameters["warping"]).warp(values[objective])
        expected = np.where(table["diverged"].to_numpy(), np.nan, y)
        for name, stored, computed in (
            *((name, values[name], x[:, column]) for column, name in enumerate(derived)),
            ("y", values["y"], expected),
        ):
            if not np.allclose(stored, computed, rtol=0.0, atol=_TOLERANCE, equal_nan=True):
                raise VersionConflictError(
                    f"{path}: column {name} is not what the raw values, the search space and the warping "
                    f"give; remove {folder} and build {manifest.reference} again"
                )
        counts[split] = _counts(table)
        blocks |= _blocks(table)
    for name, stated, found in (
        ("counts", manifest.counts, counts),
        ("blocks", {block["id"]: block for block in manifest.blocks}, blocks),
    ):
        if stated != found:
            raise VersionConflictError(
                f"{folder}: the {name} of the manifest are not those of its records; "
                f"remove it and build {manifest.reference} again"
            )


def _counts(table: pa.Table) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for group in table.group_by(["task", "status"]).aggregate([([], "count_all")]).to_pylist():
        counts.setdefault(group["task"], {})[group["status"]] = group["count_all"]
    return counts


def _blocks(table: pa.Table) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, set[Any]]] = {}
    for group in table.group_by(["block", "phase", "task", "input_id"]).aggregate([]).to_pylist():
        if group["block"]:
            members = found.setdefault(group["block"], {"phase": set(), "task": set(), "input_id": set()})
            for name, values in members.items():
                values.add(group[name])
    return {
        name: {
            "id": name,
            "phase": min(members["phase"]),
            "tasks": sorted(members["task"]),
            "inputs": len(members["input_id"]),
        }
        for name, members in found.items()
    }
