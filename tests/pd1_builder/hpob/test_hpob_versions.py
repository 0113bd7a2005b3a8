"""Versions of HPO-B, from synthetic files and from real ones in the official layout."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from synthetic_hpob import INITIALISATIONS, SPLITS, write_hpob

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.version.catalog import versions
from pd1_builder.version.manifest import Manifest

REAL = Path("../shared/data/hpob")


@pytest.fixture(scope="module", params=["synthetic", "real"])
def raw(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "synthetic":
        return write_hpob(tmp_path_factory.mktemp("raw"))
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is not here: rows of HPO-B in the official layout")
    return REAL


@pytest.fixture(scope="module")
def data_dir(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one search space, and with all of them."""
    folder = tmp_path_factory.mktemp("data")
    for config in ("5636", "all"):
        pd1_builder.build(f"hpob/{config}", raw=raw, data_dir=folder)
    return folder


def read(raw: Path, name: str) -> dict[str, Any]:
    return json.loads((raw / f"{name}.json").read_text())


def expected(raw: Path, only: str | None = None) -> dict[str, dict[str, tuple[list[float], float]]]:
    """By split and trial id: the row of X and the accuracy."""
    return {
        split: {
            f"{space}-{dataset}/{number:07d}": (x, y)
            for space, datasets in read(raw, f"meta-{split}-dataset").items()
            if only in (None, space)
            for dataset, rows in datasets.items()
            for number, (x, (y,)) in enumerate(zip(rows["X"], rows["y"], strict=True))
        }
        for split in SPLITS
    }


def records(data_dir: Path, config: str) -> list[dict[str, Any]]:
    frame = pd1_builder.load(f"hpob/{config}:1.0.0", None, as_="dataframe", data_dir=data_dir)
    return frame.to_dict("records")


@pytest.mark.slow
@pytest.mark.parametrize(("config", "only"), [("5636", "5636"), ("all", None)])
def test_every_row_is_a_record_bit_for_bit(raw: Path, data_dir: Path, config: str, only: str | None) -> None:
    rows = expected(raw, only)
    names = read(raw, "meta-dataset-descriptors")["5636"]["variables_order"]
    found = records(data_dir, config)
    assert {split: sum(record["split"] == split for record in found) for split in SPLITS} == {
        split: len(rows[split]) for split in SPLITS
    }
    for record in found:
        x, y = rows[record["split"]][record["trial_id"]]
        for group in ("x", "hyperparameters"):
            point = record[group].tolist() if only is None else [record[f"{group}.{name}"] for name in names]
            assert point == x
        assert record["y"] == record["metrics.accuracy"] == y
        digest = hashlib.sha256(struct.pack(f"<{len(x)}d", *x))
        assert record["input_id"] == digest.hexdigest()[:16]
        space, _, dataset = record["trial_id"].partition("/")[0].partition("-")
        assert (record["task"], record["task_dataset"]) == (f"{space}-{dataset}", dataset)
        assert record.get("search_space", space) == space
        assert (record["status"], record["diverged"], record["block"]) == ("done", False, "")


@pytest.mark.parametrize("config", ["5636", "all"])
def test_the_official_initialisations_are_part_of_the_records(raw: Path, data_dir: Path, config: str) -> None:
    official = {
        (f"{space}-{dataset}", name): rows
        for space, datasets in read(raw, "bo-initializations").items()
        if config in ("all", space)
        for dataset, named in datasets.items()
        for name, rows in named.items()
    }
    assert len({name for _, name in official}) == 5
    found: dict[tuple[str, str], list[int]] = {}
    for record in records(data_dir, config):
        for place in record["initialisations"]:
            name, position = place.split(":")
            rows = found.setdefault((record["task"], name), [-1] * INITIALISATIONS)
            rows[int(position)] = int(record["trial_id"].split("/")[1])
            assert record["split"] == "test"
    assert found == official


def test_the_manifest_names_files_counts_and_variables(raw: Path, data_dir: Path) -> None:
    one, everything = (pd1_builder.verify(f"hpob/{config}:1.0.0", data_dir) for config in ("5636", "all"))
    rows = expected(raw)
    for manifest, only in ((one, "5636"), (everything, "")):
        for split in SPLITS:
            ids = [trial_id for trial_id in rows[split] if trial_id.startswith(only)]
            tasks = {trial_id.split("/")[0] for trial_id in ids}
            assert set(manifest.counts[split]) == tasks
            assert manifest.rows(split) == len(ids)
        for file in manifest.raw_files:
            content = (raw / file.name).read_bytes()
            assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert [file.name for file in manifest.raw_files[3:]] == [
            "bo-initializations.json",
            "meta-dataset-descriptors.json",
        ]
    assert [each["name"] for each in everything.parameters["search_spaces"]] == sorted(
        read(raw, "meta-dataset-descriptors")
    )
    descriptors = read(raw, "meta-dataset-descriptors")["5636"]
    (described,) = one.parameters["search_spaces"]
    assert [each["name"] for each in described["variables"]] == descriptors["variables_order"]
    assert one.space is not None
    assert one.space.names == tuple(descriptors["variables_order"])
    assert everything.space is None
    logs = [each["name"] for each in described["variables"] if each["log"]]
    assert set(logs) <= set(descriptors["variables_to_apply_log"])


def build(raw: Path, data_dir: Path, config: str = "4796", **options: Any) -> Manifest:
    return pd1_builder.build(f"hpob/{config}", raw=raw, data_dir=data_dir, **options)


def test_a_gzipped_file_and_one_split_alone_give_the_same_records(tmp_path: Path) -> None:
    whole = build(write_hpob(tmp_path / "raw"), tmp_path / "whole")
    for split in ("train", "validation"):
        path = tmp_path / f"raw/meta-{split}-dataset.json"
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    assert build(tmp_path / "raw", tmp_path / "gzipped").content_hash == whole.content_hash
    for split in ("train", "validation"):
        (tmp_path / f"raw/meta-{split}-dataset.json.gz").unlink()
    test = build(tmp_path / "raw", tmp_path / "test")
    assert test.counts == {"test": whole.counts["test"]}


def edited(folder: Path, old: str, new: str) -> Path:
    """Synthetic files with a text replaced, once, in the test split."""
    path = write_hpob(folder) / "meta-test-dataset.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return folder


FIRST = '"200": {"X": [['
BAD_ROWS: dict[str, tuple[str, str, str]] = {
    "out of range": (FIRST, f"{FIRST}1.5, 0.5, 0.5], [", r"p0 = 1.5 is outside \[0, 1\]"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_stops_the_build_and_names_its_place(tmp_path: Path, case: str) -> None:
    old, new, message = BAD_ROWS[case]
    raw = edited(tmp_path / "raw", old, new)
    # The row has its accuracy too: X and y stay equally long.
    path = raw / "meta-test-dataset.json"
    path.write_text(path.read_text().replace('"y": [[', '"y": [[0.5], [', 1))
    with pytest.raises(InvalidInputError, match=r"1 of 121 rows rejected.*#4796/200:0: " + message):
        build(raw, tmp_path / "data")
    assert versions(tmp_path / "data") == ()
    if case == "out of range":
        manifest = build(raw, tmp_path / "data", max_reject_share=0.01)
        assert (manifest.rejects, manifest.rows("test")) == (1, 40)


BAD_FILES: dict[str, tuple[str, str, str]] = {
    "cut in half": (FIRST, f"{FIRST}\0", r"meta-test-dataset\.json.*(cut short|not JSON)"),
    "undescribed search space": ('"4796"', '"9999"', "search spaces 9999 are not described"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_leaves_nothing(tmp_path: Path, case: str) -> None:
    old, new, message = BAD_FILES[case]
    raw = edited(tmp_path / "raw", old, new)
    if case == "cut in half":
        path = raw / "meta-test-dataset.json"
        path.write_bytes(path.read_bytes().split(b"\0")[0])
    with pytest.raises(InvalidInputError, match=message):
        build(raw, tmp_path / "data", "all", max_reject_share=1.0)
    assert versions(tmp_path / "data") == ()
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] in ([], [".1.0.0.lock"])


def test_a_search_space_without_rows_is_named(tmp_path: Path) -> None:
    raw = write_hpob(tmp_path / "raw")
    with pytest.raises(InvalidInputError, match="no rows of search space 7609"):
        build(raw, tmp_path / "data", "7609")
    with pytest.raises(InvalidInputError, match="unknown dataset 'hpob/1'"):
        build(raw, tmp_path / "data", "1")
