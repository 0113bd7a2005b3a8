from __future__ import annotations

import gzip
import hashlib
import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from hyperbo_pipelines.curate.parquet import without_nulls
from synthetic_pd1 import rows, write

import pd1_builder
from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.version.catalog import versions
from pd1_builder.version.content_hash import content_hash
from pd1_builder.version.manifest import declared, read_manifest
from pd1_builder.version.verification import check_derived

NAME = "pd1_matched_phase1_results.jsonl"


def copied(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "data")
    return tmp_path / "data"


def test_the_manifest_says_what_the_version_is_made_of(built: Path, raw_release: Path) -> None:
    folder = built / "pd1/mini/1.0.0"
    manifest = read_manifest(folder)
    assert (manifest.reference, manifest.parent, manifest.rejects) == ("pd1/mini:1.0.0", None, 0)
    assert (manifest.rows("matched"), manifest.rows("unmatched")) == (80, 40)
    assert [(b["phase"], len(b["tasks"]), b["inputs"]) for b in manifest.blocks] == [(0, 4, 10), (1, 4, 10)]
    for file in manifest.raw_files:
        content = (raw_release / file.name).read_bytes()
        assert (file.size, file.sha256, file.rows) == (len(content), hashlib.sha256(content).hexdigest(), 40)
    on_disk = {path.name for path in folder.iterdir()}
    assert {file.name for file in manifest.files} | {"manifest.json"} == on_disk
    assert {
        "README.md",
        "matched.parquet",
        "unmatched.parquet",
        "rejects.jsonl",
        "dataset_info.json",
        "features.json",
    } < on_disk
    assert read_manifest(folder).to_json() == (folder / "manifest.json").read_text()


def plain(value: Any) -> Any:
    """What TFDS decoded, as plain Python values."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_parquet_and_tfds_hold_the_same_records_bit_for_bit(built: Path) -> None:
    folder = built / "pd1/mini/1.0.0"
    manifest = read_manifest(folder)
    builder = tfds.builder_from_directory(str(folder))
    files = {split: folder / f"{split}.parquet" for split in manifest.counts}
    of_parquet = {split: without_nulls(pq.read_table(file)) for split, file in files.items()}
    identity = declared(manifest.space, manifest.parameters)
    assert content_hash(identity, {s: [t] for s, t in of_parquet.items()}) == manifest.content_hash
    for split, table in of_parquet.items():
        decoded = list(builder.as_data_source(split))
        assert len(decoded) == len(table)
        for name in table.column_names:
            # Derived columns too, which the content hash leaves out; in repr NaN equals NaN.
            group, dot, inner = name.partition(".")
            values = [plain(example[group][inner] if dot else example[group]) for example in decoded]
            assert repr(values) == repr(table[name].to_pylist()), name


def test_records_are_the_raw_rows_bit_for_bit(built: Path, raw_release: Path) -> None:
    raw: dict[str, dict[str, Any]] = {}
    for path in raw_release.iterdir():
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        raw |= {row["trial_dir"]: row for row in map(json.loads, content.splitlines())}
    frame = pd1_builder.load("pd1/mini:1.0.0", None, as_="dataframe", data_dir=built)
    assert len(frame) == len(raw) == 120
    for record in frame.to_dict("records"):
        row = raw[record["trial_id"]]
        assert record["hyperparameters.learning_rate"] == row["hps.lr_hparams.initial_value"]
        assert record["hyperparameters.momentum"] == row["hps.opt_hparams.momentum"]
        assert record["status"] == row["status"]
        assert record["diverged"] == (row["status"] == "diverged")
        best = row.get("best_valid/error_rate")
        assert repr(record["metrics.best_valid/error_rate"]) == repr(float("nan") if best is None else best)
        curve = [float("nan") if value is None else value for value in row["valid/error_rate"]]
        assert repr(record["curves.valid/error_rate"].tolist()) == repr(curve)
        assert len(record["curves.test/error_rate"]) == 0


def test_a_tfds_user_reads_the_version_without_our_code(built: Path) -> None:
    builder: Any = tfds.builder_from_directory(str(built / "pd1/mini/1.0.0"))
    source = builder.as_data_source("unmatched")
    assert len(source) == 40
    assert source[0]["metrics"]["best_valid/error_rate"].dtype == "float64"
    assert json.loads(builder.info.metadata["search_space"])[0]["name"] == "learning_rate"
    assert "PD1" in builder.info.description


def test_the_tfds_builder_alone_builds_and_refuses_bad_rows(tmp_path: Path) -> None:
    from pd1_builder.pd1.pd1_dataset_builder import Builder

    def prepared(raw: Path, data_dir: Path) -> Any:
        builder: Any = Builder(config="release", data_dir=str(data_dir), raw=raw)
        builder.write()
        return builder

    good = rows("matched", 1, inputs=2)
    write(tmp_path / "raw", NAME, good)
    source = prepared(tmp_path / "raw", tmp_path / "data").as_data_source("matched")
    assert len(source) == 8
    assert source[0]["origin"] == b"release"
    write(tmp_path / "bad", NAME, [*good, "{"])
    with pytest.raises(InvalidInputError, match="1 of 9 rows rejected"):
        prepared(tmp_path / "bad", tmp_path / "other")
    with pytest.raises(InvalidInputError, match="pass raw"):
        Builder(config="release", data_dir=str(tmp_path))


def test_building_again_verifies_and_changes_nothing(
    built: Path, raw_release: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = built / "pd1/mini/1.0.0"
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    with caplog.at_level(logging.INFO, "pd1_builder"):
        again = pd1_builder.build(raw=raw_release, data_dir=built)
    assert again == read_manifest(folder)
    assert "pd1/mini:1.0.0: complete already; verified, nothing to do" in caplog.messages
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before


def test_other_raw_files_need_a_new_version(built: Path, tmp_path: Path) -> None:
    write(tmp_path, NAME, rows("matched", 1, inputs=2))
    with pytest.raises(VersionConflictError, match="made from other raw files"):
        pd1_builder.build(raw=tmp_path, data_dir=built)


GOOD = rows("matched", 1, inputs=5)
BAD_RAW: dict[str, tuple[dict[str, list[Any]], str]] = {
    "zero rows": ({NAME: []}, "have no rows"),
    "all rows of a split": (
        {NAME: GOOD, "pd1_unmatched_phase1_results.jsonl": ["{"]},
        "1 of 21 rows rejected",
    ),
}


@pytest.mark.parametrize("case", BAD_RAW)
def test_bad_raw_files_leave_nothing(tmp_path: Path, case: str) -> None:
    files, message = BAD_RAW[case]
    for name, content in files.items():
        write(tmp_path / "raw", name, content)
    with pytest.raises(InvalidInputError, match=message):
        pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path / "data")
    assert versions(tmp_path / "data") == ()
    left = [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert left in ([], [".1.0.0.lock"])


def test_a_split_without_a_valid_row_is_named_even_where_rejects_are_allowed(tmp_path: Path) -> None:
    write(tmp_path / "raw", NAME, GOOD)
    write(tmp_path / "raw", "pd1_unmatched_phase1_results.jsonl", ["{"])
    with pytest.raises(InvalidInputError, match="every row of the split 'unmatched' was rejected"):
        pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path / "data", max_reject_share=0.5)


def test_a_truncated_file_stops_the_build_whatever_share_is_allowed(tmp_path: Path) -> None:
    path = write(tmp_path / "raw", f"{NAME}.gz", rows("matched", 1, inputs=50))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InvalidInputError, match=r"\.jsonl\.gz:\d+: cannot be read"):
        pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path / "data", max_reject_share=1.0)


def test_wrong_arguments(tmp_path: Path, raw_release: Path) -> None:
    with pytest.raises(InvalidInputError, match="unknown dataset 'pd1/large'"):
        pd1_builder.build("pd1/large", raw=raw_release, data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match=r"'1\.0' is no version number"):
        pd1_builder.build(version="1.0", raw=raw_release, data_dir=tmp_path)
    with pytest.raises(NotAvailableError, match=r"pd1/mini:0\.9\.0 is not in"):
        pd1_builder.build(raw=raw_release, data_dir=tmp_path, parent="0.9.0")
    with pytest.raises(InvalidInputError, match="max_reject_share is 2"):
        pd1_builder.build(raw=raw_release, data_dir=tmp_path, max_reject_share=2)
    assert versions(tmp_path) == ()


def damage_shard(folder: Path) -> None:
    path = next(folder.glob("*.array_record*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def forge_records(folder: Path) -> None:
    """Change a record and the file's hash in the manifest with it: only the content hash can tell."""
    table = pq.read_table(folder / "matched.parquet")
    changed = table.set_column(table.column_names.index("phase"), "phase", pa.array([0] * len(table)))
    pq.write_table(changed, folder / "matched.parquet")
    fields = json.loads((folder / "manifest.json").read_text())
    content = (folder / "matched.parquet").read_bytes()
    for file in fields["files"]:
        if file["name"] == "matched.parquet":
            file |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(fields))


def forge_manifest(folder: Path, **changes: Any) -> None:
    fields = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(fields | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_shard, "array_record.* has changed"),
        (lambda f: (f / "rejects.jsonl").unlink(), "rejects.jsonl is missing"),
        (lambda f: (f / "note.txt").write_text("mine"), "note.txt"),
        (forge_records, "not those of its content hash"),
        (lambda f: forge_manifest(f, blocks=[]), "blocks"),
        (lambda f: forge_manifest(f, counts={"matched": {}, "unmatched": {}}), "counts"),
        (lambda f: (f / "manifest.json").write_text("{"), "manifest.json: is damaged"),
        (lambda f: (f / "manifest.json").write_text('{"format": 99}'), "format 99 is not 1"),
        (lambda f: f.rename(f.parent / "1.0.1"), r"holds pd1/mini:1\.0\.0"),
    ],
)
def test_verify_finds_damage(built: Path, tmp_path: Path, damage: Any, message: str) -> None:
    data_dir = copied(built, tmp_path)
    assert pd1_builder.verify("pd1/mini:1.0.0", data_dir).reference == "pd1/mini:1.0.0"
    damage(data_dir / "pd1/mini/1.0.0")
    with pytest.raises(VersionConflictError, match=message):
        pd1_builder.verify("pd1/mini", data_dir)


def test_y_is_computed_again(built: Path) -> None:
    folder = next(built.rglob("manifest.json")).parent
    manifest = read_manifest(folder)
    other = replace(manifest, parameters={**manifest.parameters, "warping": "identity"})
    with pytest.raises(VersionConflictError, match="column y"):
        check_derived(folder, other)
    check_derived(folder, manifest)


def test_only_what_the_archive_holds_is_made_of_it(tmp_path: Path) -> None:
    with pytest.raises(
        NotAvailableError, match=r"shipped for pd1/mini:3\.0\.0; .*hyperbo data build pd1/mini:2"
    ):
        pd1_builder.build("pd1/mini", "3.0.0", data_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_cannot_be_used_is_named(raw_release: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(HyperBOError, match=r"this is a file; name the folder of versions"):
        pd1_builder.build(raw=raw_release, data_dir=tmp_path / "file")
