"""Builds on a disk that is full from one moment on: a small file system of the test's own, really full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_disks import may_mount
from trial_files import SPACE, row, write_lines

pytestmark = pytest.mark.slow

# Runs in a process of its own: its file system, or its limit on the size of files, is nobody else's. From
# the call of a function on, there is no more space than `room` bytes; what the function then does is real.
SCRIPT = r"""
import errno, functools, importlib, json, os, resource, shutil, subprocess, sys
from pathlib import Path

kind, raw, disk = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
sys.path[:0] = json.loads(sys.argv[4])
if kind == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=True)

import pd1_builder
from pd1_builder.version.catalog import versions
from hyperbo_pipelines.run.execution import Execution

filler, data_dir = disk / "filler", disk / "data"


def fill(room):
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        return
    if filler.exists():
        return
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with filler.open("wb") as stream:
        stream.write(bytes(max(free - room, 0)))


def clear():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    filler.unlink(missing_ok=True)


def attempt(build):
    try:
        build()
        error = None
    except Exception as caught:
        error = [type(caught).__name__, str(caught), type(caught.__cause__).__name__]
    clear()
    left = [path.name for path in data_dir.rglob("*") if path.is_file()]
    return {"error": error, "left": left, "versions": len(versions(data_dir))}


def pd1(**options):
    return pd1_builder.build(raw=raw, data_dir=data_dir, **options)


def trials():
    return pd1_builder.add("own", [raw / "own.jsonl"], raw / "space.toml", data_dir=data_dir)


results = {}
for name, place, room in json.loads(sys.argv[5]):
    module, _, path = place.partition(":")
    *owners, attribute = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    original = getattr(owner, attribute)

    def full(*arguments, original=original, room=room, **keywords):
        fill(room)
        return original(*arguments, **keywords)

    setattr(owner, attribute, full)
    results[name] = attempt(trials if name == "kept files" else pd1)
    setattr(owner, attribute, original)

fill(20_000)
results["worker processes"] = attempt(lambda: pd1(execution=Execution("multi_processing", 2)))
if kind == "tmpfs":
    shutil.rmtree(data_dir, ignore_errors=True)  # A refused build may have left nothing.
    # Without inodes, not even the lock can be made.
    used = os.statvfs(disk).f_files - os.statvfs(disk).f_ffree
    subprocess.run(["mount", "-o", f"remount,nr_inodes={used}", disk], check=True)
    results["inodes"] = attempt(pd1)
    subprocess.run(["mount", "-o", "remount,nr_inodes=10000", disk], check=True)
results["space again"] = attempt(pd1)
pd1_builder.verify("pd1/mini:1.0.0", data_dir)
print(json.dumps(results))
"""
# Name, the function whose call finds the disk full, and how many bytes are free by then.
STAGES: tuple[tuple[str, str, int], ...] = (
    ("half a table", "hyperbo_pipelines.curate.build:spill_table", 12_000),
    ("summary", "hyperbo_pipelines.curate.summarize:_write", 0),
    ("half of the Parquet", "pd1_builder.builder.curated_builder:write_row_groups", 20_000),
    ("end of the Parquet", "pyarrow.parquet:ParquetWriter.close", 0),
    ("shards", "pd1_builder.builder.shards:_write_shard", 0),
    ("half a shard", "pd1_builder.builder.shards:_write_shard", 30_000),
    ("half of Croissant", "pd1_builder.builder.curated_builder:write_croissant", 8_192),
    ("TFDS metadata", "tensorflow_datasets:core.DatasetInfo.write_to_directory", 0),
    ("kept files", "pd1_builder.release.build_version:_keep", 0),
    ("half of the card", "pd1_builder.release.build_version:card", 4_096),
    ("manifest", "pd1_builder.version.manifest:Manifest.to_json", 0),
)


@pytest.fixture(scope="module")
def results(raw_release: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each build came to; where no file system may be mounted, with a limit on the size of files."""
    raw, disk = tmp_path_factory.mktemp("full"), tmp_path_factory.mktemp("disk")
    for path in raw_release.iterdir():
        (raw / path.name).write_bytes(path.read_bytes())
    (raw / "space.toml").write_text(SPACE)
    write_lines(raw / "own.jsonl", [row(str(number)) for number in range(5)])
    kind = "tmpfs" if may_mount() else "limit"
    arguments = [kind, str(raw), str(disk), json.dumps([str(Path.cwd())]), json.dumps(STAGES)]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(
        ["unshare", "-rm", *command] if kind == "tmpfs" else command,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("stage", [*(stage[0] for stage in STAGES), "worker processes", "inodes"])
def test_a_full_disk_is_named_and_leaves_nothing(results: dict[str, Any], stage: str) -> None:
    if stage not in results:
        pytest.skip("this system lets no process have a file system of its own")
    found = results[stage]
    assert found["error"] is not None, "built, on a full disk"
    kind, message, _ = found["error"]
    assert kind == "HyperBOError", message
    assert "no space is left" in message
    assert set(found["left"]) <= {".1.0.0.lock"}
    assert found["versions"] == 0


def test_with_space_again_the_next_build_succeeds(results: dict[str, Any]) -> None:
    assert results["space again"]["error"] is None
    assert results["space again"]["versions"] == 1
