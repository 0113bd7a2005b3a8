"""The version that ships: PD1 mini, from its own raw files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pd1_builder


def test_the_shipped_raw_files_build_and_load(tmp_path: Path) -> None:
    manifest = pd1_builder.build(data_dir=tmp_path)
    assert (manifest.rejects, manifest.duplicates) == (0, 0)
    assert {split: manifest.rows(split) for split in manifest.counts} == {
        file.name.split("_")[1]: file.rows for file in manifest.raw_files
    }
    (block,) = manifest.blocks
    assert block["phase"] == 1
    assert set(block["tasks"]) == set(manifest.counts["matched"])
    data = pd1_builder.load("pd1/mini:1.0.0", preparation="paper", data_dir=tmp_path)
    assert len(data.tasks) == len(block["tasks"]) >= 8
    assert len(data.task_datasets) >= 3
    for task in data.tasks:
        assert len(task.y) >= 100
        assert (task.x >= 0).all()
        assert (task.x <= 1).all()
        assert (task.objective >= 0).all()
        assert (task.objective <= 1).all()
    (matched,) = data.blocks
    assert matched.y.shape == (block["inputs"], len(data.tasks))
    # Real trials diverge: some on a few tasks only, and enough inputs on none.
    assert np.isnan(matched.y).any()
    assert len(matched.complete(matched.tasks).x) >= 50
