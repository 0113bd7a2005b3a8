from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperbo_pipelines.curate.assemble
import pyarrow.parquet as pq
import pytest
from synthetic_pd1 import write_release

import pd1_builder
import pd1_builder.builder.shards
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.builder.shards import export_tfrecord

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
KILLED = """
import os, signal, sys
from pathlib import Path
import pd1_builder.builder.shards
from pd1_builder.builder.shards import export_tfrecord
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
pd1_builder.builder.shards._report = die
export_tfrecord("pd1/mini:1.0.0", Path(sys.argv[2]), Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with pd1/mini:1.0.0, in several row groups."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperbo_pipelines.curate.assemble, "_BYTES_AT_ONCE", 1)
        pd1_builder.build(raw=write_release(folder / "raw", inputs=40), data_dir=folder)
    return folder


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.skipif(HAS_TENSORFLOW, reason="TensorFlow is installed")
def test_without_tensorflow_the_error_says_what_to_install(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match=r"pip install .hyperbo-priors\[tensorflow\]"):
        export_tfrecord("pd1/mini:1.0.0", tmp_path / "out", data_dir)
    assert not (tmp_path / "out").exists()


def test_a_failed_export_leaves_nothing(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pd1_builder.builder.shards, "require_extras", lambda *_, **__: None)

    def fail(parquet: Path, splits: Any, columns: Any, folder: Path, *rest: Any) -> None:
        (folder / "pd1-matched.tfrecord-00000-of-00001").write_bytes(b"half")
        raise OSError("broken")

    monkeypatch.setattr(pd1_builder.builder.shards, "write_shards", fail)
    with pytest.raises(OSError, match="broken"):
        export_tfrecord("pd1/mini:1.0.0", tmp_path, data_dir)
    assert left(tmp_path) == []


def test_what_is_there_already_is_not_replaced_and_what_is_damaged_not_exported(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pd1_builder.builder.shards, "require_extras", lambda *_, **__: None)
    shutil.copytree(built, tmp_path / "data")
    with pytest.raises(InvalidInputError, match=r"1\.0\.0 exists already; remove it, or export to another"):
        export_tfrecord("pd1/mini:1.0.0", tmp_path / "data", tmp_path / "data")
    (tmp_path / "data/pd1/mini/1.0.0/rejects.jsonl").unlink()
    with pytest.raises(VersionConflictError, match=r"rejects\.jsonl is missing"):
        export_tfrecord("pd1/mini:1.0.0", tmp_path / "out", tmp_path / "data")
    assert left(tmp_path / "out") == []


def plain(value: Any) -> Any:
    """What TensorFlow decoded, as plain Python values."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


@needs_tensorflow
@pytest.mark.filterwarnings("ignore")  # TensorFlow's and TFDS's own, of another set of versions.
def test_tensorflow_reads_the_same_records_in_the_same_order_bit_for_bit(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow_datasets as tfds

    monkeypatch.setattr(pd1_builder.builder.shards, "_BYTES_OF_SHARD", 1)
    folder = export_tfrecord("pd1/mini:1.0.0", tmp_path, data_dir)
    assert folder == tmp_path / "pd1/mini/1.0.0"
    assert len(list(folder.glob("pd1-matched.tfrecord-*"))) == 3
    assert sorted(path.name for path in folder.parent.iterdir()) == [".1.0.0.lock", "1.0.0"]
    for split in ("matched", "unmatched"):
        table = pq.read_table(data_dir / f"pd1/mini/1.0.0/{split}.parquet")
        loaded: Any = tfds.load("pd1/mini:1.0.0", split=split, data_dir=str(tmp_path))
        examples = list(loaded.as_numpy_iterator())
        assert len(examples) == len(table)
        for name in table.column_names:
            group, dot, inner = name.partition(".")
            found = [plain(example[group][inner] if dot else example[group]) for example in examples]
            # In repr NaN equals NaN, and no two floats are spelled alike.
            assert repr(found) == repr(table[name].to_pylist()), name
    of_folder: Any = tfds.builder_from_directory(str(folder))
    assert of_folder.as_dataset(split="matched").element_spec["y"].dtype == "float64"
    assert "PD1" in of_folder.info.description


@needs_tensorflow
def test_a_killed_export_leaves_nothing_visible_and_the_next_succeeds(data_dir: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(data_dir), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "pd1/mini/1.0.0").exists()
    export_tfrecord("pd1/mini:1.0.0", tmp_path, data_dir)
    assert sorted(path.name for path in (tmp_path / "pd1/mini").iterdir()) == [".1.0.0.lock", "1.0.0"]
