"""Dataset versions written by hand: a Parquet file per split and a manifest, without a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.data.warping import output_warping
from pd1_builder.version.content_hash import content_hash
from pd1_builder.version.manifest import MANIFEST_NAME, Manifest, digest_file

SPACE = SearchSpace((Parameter("a", 0.0, 1.0), Parameter("b", 1e-3, 1.0, "log")))
OBJECTIVE = "best_valid/error_rate"


def record(
    task: str, trial_id: str, a: float = 0.25, value: float | None = 0.5, **fields: Any
) -> dict[str, Any]:
    """A record of the search space `SPACE`; derived columns are filled in by `write_version`."""
    return {
        "task": task,
        "task_dataset": task.partition("-")[0],
        "trial_id": trial_id,
        "phase": 1,
        "origin": "release",
        "source": f"rows.jsonl:{trial_id}",
        "status": "done",
        "input_id": f"{a!r}",
        "duplicates": [],
        "block": "",
        "hyperparameters.a": a,
        "hyperparameters.b": 0.1,
        f"metrics.{OBJECTIVE}": float("nan") if value is None else value,
        "curves.train_cost": [1.0, 0.5],
        "curves.valid/error_rate": [1.0, 0.5],
    } | fields


def write_version(
    data_dir: Path,
    reference: str,
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    space: SearchSpace | None = SPACE,
    warping: str = "negative_log",
    derive: bool = True,
    without: Sequence[str] = (),
    parent: str | None = None,
) -> Path:
    """Write a version of records, and return its folder.

    Args:
      data_dir: folder of dataset versions.
      reference: `<name>/<config>:<version>`.
      splits: records by split; all of one split have the same fields.
      space: declared search space; None for a dataset of several.
      warping: declared output warping.
      derive: whether `diverged`, `x.*` and `y` are added.
      without: columns left out.
      parent: version that this one follows.
    """
    dataset, _, version = reference.partition(":")
    folder = data_dir / dataset / version
    folder.mkdir(parents=True)
    counts: dict[str, dict[str, dict[str, int]]] = {}
    blocks: dict[str, dict[str, Any]] = {}
    tables = {}
    for split in sorted(splits):
        frame = pd.DataFrame(list(splits[split]))
        if derive:
            frame = _derived(frame, space, warping)
        frame = frame.sort_values(["task", "phase", "trial_id"]).drop(columns=[*without])
        for task, status in zip(frame["task"], frame["status"], strict=True):
            of_task = counts.setdefault(split, {}).setdefault(task, {})
            of_task[status] = of_task.get(status, 0) + 1
        for block, of_block in frame[frame["block"] != ""].groupby("block"):
            blocks[str(block)] = {
                "id": block,
                "phase": int(of_block["phase"].iloc[0]),
                "tasks": sorted(set(of_block["task"])),
                "inputs": of_block["input_id"].nunique(),
            }
        tables[split] = pa.table({name: _array(name, frame[name].tolist()) for name in frame.columns})
        pq.write_table(tables[split], folder / f"{split}.parquet")
    declared = {
        "search_space": space.to_json() if space else [],
        "objective": OBJECTIVE,
        "warping": warping,
    }
    manifest = Manifest(
        dataset=dataset,
        version=version,
        parent=parent,
        content_hash=content_hash(declared, {split: [table] for split, table in tables.items()}),
        raw_files=(),
        files=tuple(digest_file(folder / f"{split}.parquet", folder) for split in tables),
        code_version="by hand",
        search_space=tuple(declared["search_space"]),
        parameters={"objective": OBJECTIVE, "warping": warping, "origin": "release"},
        counts=counts,
        duplicates=0,
        rejects=0,
        blocks=tuple(blocks[name] for name in sorted(blocks)),
    )
    (folder / MANIFEST_NAME).write_text(manifest.to_json())
    return folder


def _array(name: str, values: list[Any]) -> pa.Array:
    if name == "duplicates":
        return pa.array(values, pa.list_(pa.string()))
    if name.startswith("curves."):
        return pa.array(values, pa.list_(pa.float64()))
    return pa.array(values, from_pandas=False)


def _derived(frame: pd.DataFrame, space: SearchSpace | None, warping: str) -> pd.DataFrame:
    frame["diverged"] = frame["status"] == "diverged"
    if space is not None:
        x = space.to_unit(frame[[f"hyperparameters.{name}" for name in space.names]].to_numpy(np.float64))
        for column, name in enumerate(space.names):
            frame[f"x.{name}"] = x[:, column]
    y = output_warping(warping).warp(frame[f"metrics.{OBJECTIVE}"].to_numpy(np.float64))
    frame["y"] = np.where(frame["status"] == "done", y, np.nan)
    return frame
