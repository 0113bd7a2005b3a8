"""Pulls to, and publications on, a disk that is full from one moment on: a small file system, really full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer
from large_versions import FILES, write_large_version
from small_disks import may_mount

from pd1_builder.distribution.publish import publish

pytestmark = pytest.mark.slow

REFERENCE, FOLDER = "pd1/mini:1.0.0", "pd1/mini/1.0.0"
LARGE = f"{FOLDER}/large.bin"
# What the disk takes when it is almost full.
ROOM = 200_000
# Runs in a process of its own, with a file system, or a limit on the size of files, that nobody else has.
SCRIPT = r"""
import json, os, resource, subprocess, sys
from pathlib import Path

kind, source, room = sys.argv[1], sys.argv[2], int(sys.argv[5])
own, disk = Path(sys.argv[3]), Path(sys.argv[4])
if kind == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)

import pd1_builder
from pd1_builder.version.catalog import versions
from pd1_builder.distribution.writable_places import FolderPlace
from pd1_builder.distribution.index import read_index
from pd1_builder.distribution.addresses import place_at
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.pull_record import pull_folders

REFERENCE, LARGE = "pd1/mini:1.0.0", "pd1/mini/1.0.0/large.bin"
filler, data_dir, target = disk / "filler", disk / "data", disk / "place"


def fill(room):
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    else:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        filler.write_bytes(bytes(max(free - room, 0)))


def clear():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    filler.unlink(missing_ok=True)


def attempt(function):
    try:
        function()
    except Exception as caught:
        return [type(caught).__name__, str(caught)]
    finally:
        clear()


def sizes(root):
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {path.relative_to(root).as_posix(): path.stat().st_size for path in paths}


def partial():
    return pull_folders(data_dir / "pd1/mini/1.0.0")[0]


def pull_here(on_progress=lambda done, total: None):
    pull(REFERENCE, [source], data_dir=data_dir, on_progress=on_progress)


results = {}
if kind == "tmpfs":
    fill(500_000)
    error = attempt(pull_here)
    results["too small"] = {"error": error, "versions": len(versions(data_dir)), "left": sizes(partial())}

def fill_in_the_middle(done, total):
    # Some of the large file is there, and what is missing of it is more than there is room.
    if not is_full and sizes(partial()).get("large.bin", 0) > 50_000:
        is_full.append(True)
        fill(room)


is_full = []
error = attempt(lambda: pull_here(fill_in_the_middle))
found = {"error": error, "versions": len(versions(data_dir)), "left": sizes(partial())}
results["while it is pulled"] = found
results["space again"] = {"error": attempt(pull_here), "versions": len(versions(data_dir))}
pd1_builder.verify(REFERENCE, data_dir)

publish("pd1/mini:1.1.0", target, data_dir=own)
before, index = sizes(target), (target / "index.json").read_bytes()
put = FolderPlace.put


def put_when_full(self, name, path):
    if path.name == "large.bin":
        fill(room)
    put(self, name, path)


FolderPlace.put = put_when_full
results["while it is published"] = {"error": attempt(lambda: publish(REFERENCE, target, data_dir=own))}
FolderPlace.put = put
results["while it is published"]["index"] = (target / "index.json").read_bytes() == index
results["while it is published"]["left"] = sorted(sizes(target).keys() - before.keys())
results["listed"] = [entry.reference for entry in read_index(place_at(target))]
publish(REFERENCE, target, data_dir=own)
results["listed again"] = [entry.reference for entry in read_index(place_at(target))]
pull(REFERENCE, [target], data_dir=disk / "second")
pd1_builder.verify(REFERENCE, disk / "second")
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    root = tmp_path_factory.mktemp("published")
    write_large_version(root / "own", REFERENCE)
    write_large_version(root / "own", "pd1/mini:1.1.0", seed=1, parent="1.0.0", sizes={})
    publish(REFERENCE, root / "place", data_dir=root / "own")
    with FaultyServer(root / "place") as server:
        yield server


@pytest.fixture(scope="module")
def results(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each attempt came to; where no file system may be mounted, with a limit on the size of files."""
    kind = "tmpfs" if may_mount() else "limit"
    own, disk = server.folder.parent / "own", tmp_path_factory.mktemp("disk")
    command = [sys.executable, "-c", SCRIPT, kind, server.url, str(own), str(disk), str(ROOM)]
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


def test_a_disk_too_small_is_named_before_anything_is_fetched(results: dict[str, Any]) -> None:
    if "too small" not in results:
        pytest.skip("this system lets no process have a file system of its own")
    kind, message = results["too small"]["error"]
    assert kind == "HyperBOError"
    assert message.startswith(f"{REFERENCE}: no space is left")
    assert results["too small"]["versions"] == 0
    assert results["too small"]["left"].keys() == {"manifest.json"}


def test_a_disk_that_fills_is_named_and_what_was_brought_is_kept(results: dict[str, Any]) -> None:
    found = results["while it is pulled"]
    kind, message = found["error"]
    assert kind == "HyperBOError"
    assert f"{REFERENCE}: no space is left" in message
    assert found["versions"] == 0
    assert sum(found["left"].values()) > 0


def test_with_space_again_the_pull_goes_on_where_it_was(
    results: dict[str, Any], server: FaultyServer
) -> None:
    assert results["space again"] == {"error": None, "versions": 1}
    kept = results["while it is pulled"]["left"]
    assert 0 < kept["large.bin"] < FILES["large.bin"]
    assert server.ranges_asked(LARGE)[-1] == f"bytes={kept['large.bin']}-"


def test_a_place_that_is_full_keeps_its_index(results: dict[str, Any]) -> None:
    found = results["while it is published"]
    kind, message = found["error"]
    assert kind == "HyperBOError"
    assert f"{REFERENCE} at " in message
    assert "no space is left on the disk; it is not in the index" in message
    assert found["index"]
    assert LARGE not in found["left"]
    assert not [name for name in found["left"] if name.endswith(".tmp")]
    assert results["listed"] == ["pd1/mini:1.1.0"]


def test_with_space_again_the_publication_goes_on(results: dict[str, Any]) -> None:
    assert results["listed again"] == ["pd1/mini:1.0.0", "pd1/mini:1.1.0"]
