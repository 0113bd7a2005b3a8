"""The version that ships: PD1 mini, from its own raw files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hyperbo_pipelines.collect.preset import load_preset
from hyperbo_pipelines.curate.raw_files import sha256_of

import pd1_builder
from hyperbo.evaluation.measures.survey import rank_correlations, survey_tasks
from pd1_builder.version.manifest import Manifest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """Version 2.0.0, without curves, and the folder it is in."""
    folder = tmp_path_factory.mktemp("data")
    return folder, pd1_builder.build("pd1/mini_without_curves", "2.0.0", data_dir=folder)


def test_the_first_shipped_version_builds_and_loads(tmp_path: Path) -> None:
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


def test_the_collection_is_that_of_its_preset() -> None:
    raw = Path(pd1_builder.__file__).parent / "pd1/raw/mini-2.0.0"
    stated = json.loads((raw / "collection.json").read_text())
    preset = load_preset("mini")
    assert (stated["version"], stated["preset_sha256"]) == (preset.version, preset.sha256)
    assert {path.name: sha256_of(path) for path in raw.glob("pd1_*")} == stated["files_sha256"]
    with gzip.open(raw / "timings.jsonl.gz") as stream:
        assert sum(1 for _ in stream) == sum(stated["trials"].values()) == 22_604


def test_the_collection_has_the_design_of_pd1(collection: tuple[Path, Manifest]) -> None:
    data_dir, manifest = collection
    assert (manifest.rejects, manifest.duplicates) == (0, 0)
    assert (manifest.rows("matched"), manifest.rows("unmatched")) == (14_600, 8_004)
    # The task that is only trained on has the first 100 inputs of phase 0.
    assert sorted((block["phase"], block["inputs"], len(block["tasks"])) for block in manifest.blocks) == [
        (0, 100, 30),
        (0, 150, 29),
        (1, 250, 29),
    ]
    data = pd1_builder.load("pd1/mini_without_curves:2.0.0", data_dir=data_dir)
    good = {task.name: len(task.y) for task in data.tasks}
    assert good.pop("textures-wide_resnet-40") == 78
    assert (min(good.values()), max(good.values())) == (654, 667)


def test_the_collection_is_a_benchmark(collection: tuple[Path, Manifest]) -> None:
    data_dir, _ = collection
    reference = "pd1/mini_without_curves:2.0.0"
    data = pd1_builder.load(reference, data_dir=data_dir)
    tasks = survey_tasks(pd1_builder.load(reference, None, as_="dataframe", data_dir=data_dir), data)
    # None is solved by ten random points, none is flat, some diverge often and some never.
    assert tasks["chance_10"].max() < 0.15
    assert tasks["range"].min() > 0.25
    assert (tasks["diverged"].min(), tasks["diverged"].max() > 0.3) == (0.0, True)
    # Tasks are related, and not all alike.
    pairs = rank_correlations(data).to_numpy()[np.triu_indices(len(tasks), 1)]
    assert 0.3 < np.nanmin(pairs) < 0.5
    assert 0.8 < np.nanmedian(pairs) < 0.95
