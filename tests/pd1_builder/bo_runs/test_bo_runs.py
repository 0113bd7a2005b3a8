from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tensorflow_datasets as tfds
from evaluation_folders import drawn_records, rand_records, write_evaluation
from version_folders import SPACE, record, write_version

import pd1_builder
from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.data.tuning_data import TuningData
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.bo_runs.bo_runs_dataset_builder import Builder
from pd1_builder.bo_runs.recipe import bo_runs_recipe, evaluations_in, record_runs
from pd1_builder.version.catalog import versions
from pd1_builder.version.manifest import Manifest

SEEDS = (0, 1)
ITERATIONS = 4


@pytest.fixture(scope="module")
def data(built: Path) -> TuningData:
    return pd1_builder.load("pd1/mini:1.0.0", data_dir=built)


@pytest.fixture(scope="module")
def evaluation(data: TuningData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random search, simulated for real, on pd1/mini:1.0.0."""
    folder = tmp_path_factory.mktemp("evaluation")
    return write_evaluation(folder, rand_records(data, SEEDS, ITERATIONS), data)


@pytest.fixture(scope="module")
def second(data: TuningData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A later evaluation with priors on the same version."""
    records = drawn_records(data, ("H-NLL",), SEEDS, 2)
    records["prior"] = "00000000deadbeef"
    return write_evaluation(tmp_path_factory.mktemp("second"), records, data)


@pytest.fixture(scope="module")
def first_version(
    built: Path, evaluation: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Manifest]:
    """A data folder with pd1/mini:1.0.0 and bo_runs/study:1.0.0, and the latter's manifest."""
    data_dir = tmp_path_factory.mktemp("first") / "data"
    shutil.copytree(built, data_dir)
    return data_dir, record_runs("study", evaluation, data_dir=data_dir)


@pytest.fixture
def data_dir(first_version: tuple[Path, Manifest], tmp_path: Path) -> Path:
    """A copy of the data folder, to write to."""
    shutil.copytree(first_version[0], tmp_path / "data")
    return tmp_path / "data"


def kept_ids(data_dir: Path, version: str) -> list[str]:
    return sorted(path.name for path in (data_dir / "bo_runs/study" / version / "raw").iterdir())


def test_the_manifest_says_what_was_observed_and_how(
    first_version: tuple[Path, Manifest], evaluation: Path, data: TuningData
) -> None:
    data_dir, manifest = first_version
    assert (manifest.reference, manifest.parent, manifest.rejects) == ("bo_runs/study:1.0.0", None, 0)
    assert manifest.space == PD1_SEARCH_SPACE
    assert [(f.name, f.rows) for f in manifest.raw_files] == [
        ("records.parquet", 4 * len(SEEDS) * ITERATIONS),
        ("metadata.json", None),
    ]
    (identifier,) = kept_ids(data_dir, "1.0.0")
    assert manifest.parameters == {
        "origin": "bo_run",
        "objective": "objective",
        "observed_objective": "best_valid/error_rate",
        "warping": "negative_log",
        "evaluations": [
            {
                "id": identifier,
                "dataset": "pd1/mini:1.0.0",
                "manifest_hash": data.provenance.manifest_hash,
                "preparation": "paper",
                "protocol": "a candidate may be observed again",
                "code_version": "0.1.0+000000000000",
                "methods": {"Rand": {}},
            }
        ],
    }
    kept = data_dir / "bo_runs/study/1.0.0/raw" / identifier
    for name in ("records.parquet", "metadata.json"):
        assert (kept / name).read_bytes() == (evaluation / name).read_bytes()
    assert pd1_builder.verify("bo_runs/study:1.0.0", data_dir) == manifest


def test_runs_are_read_as_tuning_data_and_by_tfds(first_version: tuple[Path, Manifest]) -> None:
    data_dir, _ = first_version
    data = pd1_builder.load("bo_runs/study", "observed", data_dir=data_dir)
    assert [len(task.y) for task in data.tasks] == [len(SEEDS) * ITERATIONS] * 4
    assert data.blocks == ()
    source = tfds.builder_from_directory(str(data_dir / "bo_runs/study/1.0.0")).as_data_source("runs")
    assert (source[0]["method"], source[0]["iteration"], source[1]["iteration"]) == (b"Rand", 1, 2)


def test_the_same_evaluation_twice_is_nothing_to_do(
    data_dir: Path, evaluation: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again = shutil.copytree(evaluation, tmp_path / "moved")
    metadata = json.loads((again / "metadata.json").read_text())
    (again / "metadata.json").write_text(json.dumps(metadata | {"started": "2027-01-01T00:00:00Z"}))
    with caplog.at_level(logging.INFO, "pd1_builder"):
        assert record_runs("study", again, data_dir=data_dir).version == "1.0.0"
    assert "bo_runs/study:1.0.0 holds this evaluation already" in caplog.text
    assert [each.version for each in versions(data_dir) if each.dataset == "bo_runs/study"] == ["1.0.0"]


def test_a_second_evaluation_makes_the_next_minor_version(
    data_dir: Path, second: Path, evaluation: Path, first_version: tuple[Path, Manifest]
) -> None:
    manifest = record_runs("study", second, data_dir=data_dir)
    assert (manifest.version, manifest.parent) == ("1.1.0", "1.0.0")
    assert pd1_builder.verify("bo_runs/study:1.1.0", data_dir) == manifest
    assert len(kept_ids(data_dir, "1.1.0")) == 2
    frame = pd1_builder.load("bo_runs/study:1.1.0", None, as_="dataframe", data_dir=data_dir)
    old = pd1_builder.load("bo_runs/study:1.0.0", None, as_="dataframe", data_dir=data_dir)
    of_rand = frame[frame["method"] == "Rand"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_rand, old)
    assert set(frame[frame["method"] == "H-NLL"]["prior"]) == {"00000000deadbeef"}
    assert set(of_rand["prior"]) == {""}
    # The order in which they were recorded does not matter, and the version can be made from what it keeps.
    for folders in ([second, evaluation], evaluations_in(data_dir / "bo_runs/study/1.1.0/raw")):
        recipe = bo_runs_recipe(folders, data_dir)
        assert dict(recipe.parameters) == manifest.parameters
        assert [file.sha256 for file in recipe.raw_files] == [f.sha256 for f in manifest.raw_files[:2]]


def test_the_tfds_builder_alone_makes_a_version_from_what_one_keeps(
    first_version: tuple[Path, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, manifest = first_version
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(data_dir))
    builder = Builder(
        config=Builder.configuration("study"),
        raw=data_dir / "bo_runs/study/1.0.0/raw",
        version="1.0.0",
        data_dir=str(tmp_path),
    )
    assert builder.write().content_hash == manifest.content_hash


def changed(evaluation: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(evaluation, folder)
    metadata = json.loads((folder / "metadata.json").read_text())
    (folder / "metadata.json").write_text(json.dumps(metadata | changes))
    return folder


def test_an_evaluation_of_another_content_is_refused_with_both_hashes(
    data_dir: Path, evaluation: Path, data: TuningData, tmp_path: Path
) -> None:
    folder = changed(evaluation, tmp_path / "other", manifest_hash="feedfacefeedface")
    with pytest.raises(VersionConflictError, match=f"feedfacefeedface.*{data.provenance.manifest_hash}"):
        record_runs("other", folder, data_dir=data_dir)
    assert not (data_dir / "bo_runs/other").exists()


def test_a_dataset_that_is_not_here_or_damaged_is_refused(
    data_dir: Path, evaluation: Path, tmp_path: Path
) -> None:
    folder = changed(evaluation, tmp_path / "other", dataset="pd1/mini:9.9.9")
    with pytest.raises(NotAvailableError, match=r"pd1/mini:9\.9\.9 is not in "):
        record_runs("other", folder, data_dir=data_dir)
    with (data_dir / "pd1/mini/1.0.0/matched.parquet").open("r+b") as stream:
        stream.seek(100)
        stream.write(b"\0\1\2\3")
    with pytest.raises(VersionConflictError, match=r"matched.parquet is missing or has changed; remove "):
        record_runs("other", evaluation, data_dir=data_dir)
    with pytest.raises(InvalidInputError, match="no evaluation"):
        bo_runs_recipe([], data_dir)
    assert not (data_dir / "bo_runs/other").exists()


def test_rejects_stand_beside_the_records_or_stop_the_build(
    data_dir: Path, data: TuningData, tmp_path: Path
) -> None:
    records = drawn_records(data, ("Rand",), SEEDS, ITERATIONS)
    records.loc[5, "trial_id"] = "nowhere"
    folder = write_evaluation(tmp_path / "rejects", records, data)
    with pytest.raises(InvalidInputError, match=r"1 of 32 rows rejected.*records.parquet:6: the trial"):
        record_runs("other", folder, data_dir=data_dir)
    assert not (data_dir / "bo_runs/other").exists()
    manifest = record_runs("other", folder, data_dir=data_dir, max_reject_share=0.05)
    assert (manifest.rows("runs"), manifest.rejects) == (31, 1)


def test_evaluations_on_different_declarations_are_not_mixed(
    data_dir: Path, evaluation: Path, tmp_path: Path
) -> None:
    splits = {"matched": [record("net-mlp", f"t{i}", a=i / 4) for i in range(4)]}
    write_version(data_dir, "pd1/other:1.0.0", splits, space=SPACE)
    write_version(data_dir, "hpob/all:1.0.0", splits, space=None, without=["hyperparameters.a"])
    other = pd1_builder.load("pd1/other:1.0.0", "observed", data_dir=data_dir)
    folder = write_evaluation(tmp_path / "other", drawn_records(other, ("Rand",), (0,), 2), other)
    with pytest.raises(InvalidInputError, match=r"another search space than .* record it under another name"):
        record_runs("study", folder, data_dir=data_dir)
    several = json.loads((data_dir / "hpob/all/1.0.0/manifest.json").read_text())["content_hash"]
    mixed = changed(evaluation, tmp_path / "all", dataset="hpob/all:1.0.0", manifest_hash=several)
    with pytest.raises(InvalidInputError, match=r"hpob/all:1.0.0 spans several search spaces"):
        record_runs("mixed", mixed, data_dir=data_dir)
