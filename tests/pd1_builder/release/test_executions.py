"""One dataset wherever Beam runs: in this process, in worker processes, on a pool of workers elsewhere."""

from __future__ import annotations

import gzip
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import hyperbo_pipelines.curate.assemble
import hyperbo_pipelines.curate.raw_files
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from hyperbo_pipelines.run.execution import Execution
from synthetic_pd1 import write, write_release

import pd1_builder
import pd1_builder.builder.shards
from hyperbo.errors import HyperBOError, InvalidInputError
from pd1_builder.release.build_version import build_from_recipe
from pd1_builder.release.datasets import find_recipe
from pd1_builder.version.manifest import Manifest

pytestmark = pytest.mark.slow

INPUTS = 80
ROWS = {"matched": 2 * 4 * INPUTS, "unmatched": 4 * INPUTS}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("raw"), inputs=INPUTS)


@pytest.fixture(scope="module")
def whole(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the version built in this process, each file and each split in one piece."""
    data_dir = tmp_path_factory.mktemp("whole")
    pd1_builder.build(raw=raw, data_dir=data_dir)
    return data_dir


@pytest.fixture
def _in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the work so small that every worker gets some of it."""
    monkeypatch.setattr(hyperbo_pipelines.curate.raw_files, "_CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(hyperbo_pipelines.curate.assemble, "_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(pd1_builder.builder.shards, "_BYTES_OF_SHARD", 1)


@pytest.fixture
def worker_pool() -> Iterator[str]:
    """The address of a pool of workers in processes of their own, as on another host."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The pool starts plain `python`, which must be this one, and finds the project as an installed one would.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    pool = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "apache_beam.runners.worker.worker_pool_main",
            "--service_port",
            str(port),
        ],
        env=os.environ | {"PATH": path, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port, pool)
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(pool.pid, signal.SIGKILL)
        pool.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"no worker pool at port {port}; exit code {process.poll()}")


def facts(manifest: Manifest) -> Manifest:
    """A manifest without what may differ: the files that hold the records, and those they were read from."""
    # Which sources the code has is no matter of where it runs; they may be edited while this test runs.
    return replace(manifest, files=(), raw_files=(), code_version="")


def records(data_dir: Path, split: str) -> pa.Table:
    return pq.read_table(data_dir / f"pd1/mini/1.0.0/{split}.parquet")


def shards(data_dir: Path) -> int:
    return len(list((data_dir / "pd1/mini/1.0.0").glob("*.array_record*")))


def expect_the_same(whole: Path, other: Path, ignored: tuple[str, ...] = ()) -> None:
    """Equal manifests, and equal rows, bit for bit, in Parquet and in the TFDS shards."""
    first, second = (pd1_builder.verify("pd1/mini:1.0.0", each) for each in (whole, other))
    assert facts(first) == facts(second)
    assert {split: first.rows(split) for split in first.counts} == ROWS
    for split in ROWS:
        # In repr NaN equals NaN, and no two floats are spelled alike.
        one, two = (records(each, split).drop_columns(list(ignored)).to_pylist() for each in (whole, other))
        assert repr(one) == repr(two)
        source: Any = tfds.builder_from_directory(str(other / "pd1/mini/1.0.0")).as_data_source(split)
        assert len(source) == ROWS[split]
        read = [(example["trial_id"].decode(), float(example["y"]).hex()) for example in source]
        numbers = [float("nan") if record["y"] is None else record["y"] for record in one]
        assert read == [(each["trial_id"], y.hex()) for each, y in zip(one, numbers, strict=True)]


@pytest.mark.usefixtures("_in_pieces")
def test_in_memory_with_the_rows_in_another_order_and_in_many_pieces(
    whole: Path, raw: Path, tmp_path: Path
) -> None:
    for number, path in enumerate(sorted(raw.iterdir())):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.splitlines()
        random.Random(number).shuffle(lines)
        # Gzipped where they were not, and the other way round.
        name = path.name.removesuffix(".gz") if path.suffix == ".gz" else f"{path.name}.gz"
        write(tmp_path / "raw", name, lines)
    manifest = pd1_builder.build(raw=tmp_path / "raw", data_dir=tmp_path / "data")
    assert manifest.content_hash == pd1_builder.verify("pd1/mini:1.0.0", whole).content_hash
    assert shards(tmp_path / "data") > 2 == shards(whole)
    # A record says where it was read: that is no part of what it says.
    expect_the_same(whole, tmp_path / "data", ignored=("source",))


@pytest.mark.usefixtures("_in_pieces")
@pytest.mark.parametrize("workers", [1, 4])
def test_in_worker_processes(whole: Path, raw: Path, tmp_path: Path, workers: int) -> None:
    pd1_builder.build(raw=raw, data_dir=tmp_path, execution=Execution("multi_processing", workers))
    assert shards(tmp_path) > 2
    expect_the_same(whole, tmp_path)


@pytest.mark.usefixtures("_in_pieces")
def test_on_a_pool_of_workers(whole: Path, raw: Path, tmp_path: Path, worker_pool: str) -> None:
    pd1_builder.build(raw=raw, data_dir=tmp_path, execution=Execution("external", 2, worker_pool))
    assert shards(tmp_path) > 2
    expect_the_same(whole, tmp_path)


def test_arguments_of_beam_choose_another_runner(tmp_path: Path) -> None:
    recipe = find_recipe("pd1/mini", write_release(tmp_path / "raw", inputs=1))
    execution = Execution(beam_arguments=("--runner=NoSuchRunner",))
    with pytest.raises(HyperBOError, match="NoSuchRunner"):
        build_from_recipe("pd1/mini", "1.0.0", recipe, data_dir=tmp_path, execution=execution)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "multi_threading"}, "running mode 'multi_threading' .* in_memory, multi_proc"),
        ({"workers": 0}, "with 0 workers; .*at least 1"),
        ({"mode": "external"}, "with the worker pool ''; give the address"),
        ({"worker_pool": "host:1"}, "'in_memory' with the worker pool 'host:1'; .* only with it"),
    ],
)
def test_executions_that_would_lose_rows_or_hang_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Execution(**fields)


@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_an_error_inside_the_pipeline_is_the_same_wherever_it_is_raised(tmp_path: Path, mode: Any) -> None:
    recipe = find_recipe("pd1/mini", write_release(tmp_path / "raw", inputs=2))
    (tmp_path / "raw/pd1_matched_phase0_results.jsonl").unlink()
    with pytest.raises(InvalidInputError) as caught:
        build_from_recipe("pd1/mini", "1.0.0", recipe, data_dir=tmp_path, execution=Execution(mode))
    message = str(caught.value)
    assert message.startswith("pd1_matched_phase0_results.jsonl:1: cannot be read")
    assert message.endswith("fetch or write the file again")
    assert not (tmp_path / "pd1").exists()


# Beam's threads end with errors of their own when a worker is gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_killed_worker_process_stops_the_build(raw: Path, tmp_path: Path) -> None:
    recipe = replace(
        find_recipe("pd1/mini", raw),
        curate=lambda folder: beam.Map(lambda _: os.kill(os.getpid(), signal.SIGKILL)),
    )
    with pytest.raises(HyperBOError, match="a worker process ended before its work was done"):
        build_from_recipe(
            "pd1/mini", "1.0.0", recipe, data_dir=tmp_path, execution=Execution("multi_processing", workers=1)
        )
    assert not (tmp_path / "pd1").exists()
