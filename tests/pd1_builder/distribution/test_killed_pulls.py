"""Pulls and publications killed by the kernel at random moments, and two pulls at once: in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from large_versions import FILES, write_large_version
from own_trials import build_own_trials

import pd1_builder
from hyperbo.errors import InvalidInputError
from pd1_builder.distribution.addresses import place_at
from pd1_builder.distribution.index import read_index
from pd1_builder.distribution.prune import prune
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.catalog import version_folder, versions
from pd1_builder.version.pull_record import record_pull

pytestmark = pytest.mark.slow

REFERENCE, FOLDER = "pd1/mini:1.0.0", "pd1/mini/1.0.0"
PULLS, PUBLICATIONS = 50, 15
# A disk that takes its time, so that deaths hit what comes after the last byte too.
SECONDS_OF_FSYNC = 0.003
# A process without threads forks one that works, kills it at a random moment, and looks at what is there.
DRIVER = r"""
import json, os, random, shutil, signal, sys, time, traceback
from pathlib import Path

# Imported once, and not by every process that is forked.
import pandas
import pyarrow.parquet

import pd1_builder
import pd1_builder.distribution.web
from pd1_builder.version.catalog import find, versions
from pd1_builder.distribution.index import read_index
from pd1_builder.distribution.addresses import place_at
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.version.manifest import digest_file, read_manifest
from pd1_builder.version.pull_record import pull_folders, revision_of

kind, source, folder, own = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
kills, seconds_of_fsync = int(sys.argv[5]), float(sys.argv[6])
REFERENCE, FOLDER = "pd1/mini:1.0.0", "pd1/mini/1.0.0"
fsync = os.fsync


def slow_fsync(descriptor):
    time.sleep(seconds_of_fsync)
    fsync(descriptor)


os.fsync = slow_fsync


def start(function):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def size(root):
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


class Pulling:
    def work(self):
        pull(REFERENCE, [source], data_dir=folder)

    def look(self):
        # Not there, or all there and right: nothing else.
        if versions(folder):
            assert find(REFERENCE, folder).folder == folder / FOLDER
            # Arrow has threads, and a process that forks must have none.
            assert ended(start(lambda: pd1_builder.verify(REFERENCE, folder))) == 0
        else:
            assert not (folder / FOLDER).exists()

    def state(self):
        if versions(folder):
            return "visible"
        partial = pull_folders(folder / FOLDER)
        if not partial:
            return "nothing"
        here, files = size(partial[0]), sum(file.size for file in read_manifest(own / FOLDER).files)
        return "all bytes" if here > files else "some bytes" if here > 10_000 else "hardly any"

    def is_done(self):
        return bool(versions(folder))


class Publishing:
    def entries(self):
        return read_index(place_at(folder)) if (folder / "index.json").exists() else ()

    def work(self):
        publish(f"pd1/mini:1.{len(self.entries())}.0", folder, data_dir=own)

    def look(self):
        for entry in self.entries():
            there = folder / entry.folder
            assert revision_of(there) == entry.revision
            for file in read_manifest(there).files:
                assert digest_file(there / file.name, there).sha256 == file.sha256

    def state(self):
        claims, made = (len(list(folder.glob(f"index/*/*/[0-9]*.{kind}"))) for kind in ("claim", "json"))
        listed = len(self.entries())
        return "claimed" if made < claims else "not listed" if listed < made else "nothing new"

    def is_done(self):
        return len(self.entries()) == 3


worker = Pulling() if kind == "pull" else Publishing()
began = time.monotonic()
assert ended(start(worker.work)) == 0
seconds = time.monotonic() - began
shutil.rmtree(folder)
chance = random.Random(20261122)
states = []
while len(states) - states.count("finished") < kills:
    child = start(worker.work)
    time.sleep(chance.uniform(0.0, 0.8 * seconds))
    os.kill(child, signal.SIGKILL)
    code = ended(child)
    assert code in (0, -signal.SIGKILL), code
    worker.look()
    states.append(worker.state() if code else "finished")
    # Now and then from nothing, or most deaths would come late.
    if worker.is_done() or chance.random() < 0.3:
        shutil.rmtree(folder, ignore_errors=True)
assert ended(start(worker.work)) == 0
worker.look()
print(json.dumps(states))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three versions; read it only."""
    data_dir = tmp_path_factory.mktemp("own_large")
    for minor in range(3):
        sizes = FILES if minor == 0 else {"large.bin": 100_000, "raw/a file.csv": 1000}
        parent = f"1.{minor - 1}.0" if minor else None
        write_large_version(data_dir, f"pd1/mini:1.{minor}.0", seed=minor, parent=parent, sizes=sizes)
    return data_dir


@pytest.fixture(scope="module")
def server(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    """A slow server of the first version: all of a pull takes a tenth of a second."""
    folder = tmp_path_factory.mktemp("place")
    publish(REFERENCE, folder, data_dir=own)
    with FaultyServer(folder, rate=12e6) as server:
        yield server


def drive(kind: str, source: str, folder: Path, own: Path, kills: int) -> Counter[str]:
    """What was there when a process was killed, or that it had finished: how often."""
    arguments = [kind, source, str(folder), str(own), str(kills), str(SECONDS_OF_FSYNC)]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    states: list[str] = json.loads(done.stdout)
    assert len(states) - states.count("finished") == kills
    return Counter(states)


def test_a_pull_killed_at_any_moment_leaves_all_of_a_version_or_none(
    server: FaultyServer, own: Path, tmp_path: Path
) -> None:
    states = drive("pull", server.url, tmp_path / "data", own, PULLS)
    # That the moments were spread over all of a pull, or the test would say little.
    assert states["some bytes"] >= 5, states
    assert len(states) >= 3, states
    assert [each.version for each in versions(tmp_path / "data")] == ["1.0.0"]
    pd1_builder.verify(REFERENCE, tmp_path / "data")


def test_a_publication_killed_at_any_moment_leaves_an_index_of_whole_versions(
    own: Path, tmp_path: Path
) -> None:
    states = drive("publish", "", tmp_path / "place", own, PUBLICATIONS)
    assert states["claimed"] >= 1, states
    for minor in range(3):
        publish(f"pd1/mini:1.{minor}.0", tmp_path / "place", data_dir=own)
    for entry in read_index(place_at(tmp_path / "place")):
        pull(entry.reference, [tmp_path / "place"], data_dir=tmp_path / "data")
        pd1_builder.verify(entry.reference, tmp_path / "data")
    assert [each.version for each in versions(tmp_path / "data")] == ["1.0.0", "1.1.0", "1.2.0"]


PULL = """
import sys
from pathlib import Path
from pd1_builder.distribution.pull import pull
pull(sys.argv[1], [sys.argv[2]], data_dir=Path(sys.argv[3]))
"""


def test_of_two_pulls_at_once_one_brings_it_and_the_other_waits(
    server: FaultyServer, own: Path, tmp_path: Path
) -> None:
    server.sent.clear()
    server.requests.clear()
    command = [sys.executable, "-c", PULL, REFERENCE, server.url, str(tmp_path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=100)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    pd1_builder.verify(REFERENCE, tmp_path)
    asked = Counter(request.path for request in server.requests)
    for name in (name for name, size in FILES.items() if size):
        assert asked[f"{FOLDER}/{name}"] == 1
        assert server.sent[f"{FOLDER}/{name}"] == FILES[name]


def test_a_version_built_after_a_killed_pull_is_not_a_pulled_version(tmp_path: Path) -> None:
    # As after a death between the record of a pull and the version itself.
    record_pull(version_folder("trials/own", "1.0.0", tmp_path), "0" * 64, "/a/place")
    build_own_trials(tmp_path)
    assert prune(keep=0, data_dir=tmp_path) == ()
    assert [each.version for each in versions(tmp_path)] == ["1.0.0"]
    with pytest.raises(InvalidInputError, match="was not pulled"):
        prune(["trials/own:1.0.0"], data_dir=tmp_path)
