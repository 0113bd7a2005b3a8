"""Builds killed by the kernel, and two builds at once: in processes of their own, as they would be."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pd1_builder
from hyperbo.errors import NotAvailableError
from pd1_builder.version.catalog import versions

pytestmark = pytest.mark.slow

BUILD = """
import logging, os, signal, sys
from pathlib import Path
import pd1_builder
logging.basicConfig(level=logging.WARNING)
logging.getLogger("pd1_builder").setLevel(logging.INFO)
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
{sabotage}
pd1_builder.build(raw=Path(sys.argv[1]), data_dir=Path(sys.argv[2]))
"""
# Where the process dies: in each step of a build, the last with everything written but not yet visible.
STAGES = {
    "in the tables": "import hyperbo_pipelines.curate.build as m; m.spill_table = die",
    "in the summary": "import hyperbo_pipelines.curate.summarize as m; m._write = die",
    "in the Parquet": "import pyarrow.parquet as m; m.ParquetWriter.write_table = die",
    "in the shards": "import pd1_builder.builder.shards as m; m._write_shard = die",
    "in the Croissant metadata": "import pd1_builder.builder.curated_builder as m; m.write_croissant = die",
    "in the metadata": "import tensorflow_datasets as m; m.core.DatasetInfo.write_to_directory = die",
    "in the card": "import pd1_builder.release.build_version as m; m.card = die",
    "in the manifest": "import pd1_builder.version.manifest as m; m.Manifest.to_json = die",
    "before it is visible": "import pd1_builder.release.build_version as m; m.publish = die",
}


def start(raw: Path, data_dir: Path, sabotage: str = "") -> subprocess.Popen[str]:
    script = BUILD.format(sabotage=sabotage)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(raw), str(data_dir)], stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_build_leaves_nothing_visible_and_the_next_succeeds(
    raw_release: Path, tmp_path: Path, stage: str
) -> None:
    process = start(raw_release, tmp_path, STAGES[stage])
    _, errors = process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL, errors
    folder = tmp_path / "pd1/mini"
    assert len(list(folder.glob(".building-1.0.0-*"))) == 1
    assert versions(tmp_path) == ()
    with pytest.raises(NotAvailableError, match="build it"):
        pd1_builder.load("pd1/mini:1.0.0", data_dir=tmp_path)
    pd1_builder.build(raw=raw_release, data_dir=tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [".1.0.0.lock", "1.0.0"]
    assert pd1_builder.verify("pd1/mini:1.0.0", tmp_path).rows("matched") == 80


def test_of_two_builds_at_once_one_builds_and_the_other_says_so(raw_release: Path, tmp_path: Path) -> None:
    processes = [start(raw_release, tmp_path) for _ in range(2)]
    logs = [process.communicate(timeout=100)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], logs
    assert sorted("built, 120 records" in log for log in logs) == [False, True]
    assert sorted("complete already" in log for log in logs) == [False, True]
    assert sorted(path.name for path in (tmp_path / "pd1/mini").iterdir()) == [".1.0.0.lock", "1.0.0"]
