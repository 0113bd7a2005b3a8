from __future__ import annotations

from pathlib import Path

# Imported here: both keep hold of the stderr that is there when they are, and a command's soon closes.
import apache_beam  # noqa: F401
import pytest
import tensorflow_datasets  # noqa: F401
from evaluation_folders import drawn_records, write_evaluation
from hyperbo_flows.cli.main import app
from typer.testing import CliRunner
from version_folders import record, write_version

import pd1_builder


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """An evaluation on a version written by hand, which lies in `data` beside it."""
    splits = {"matched": [record("net-mlp", f"t{i}", a=i / 4, value=0.1 * (i + 1)) for i in range(4)]}
    write_version(tmp_path / "data", "pd1/mini:1.0.0", splits)
    data = pd1_builder.load("pd1/mini:1.0.0", "observed", data_dir=tmp_path / "data")
    return write_evaluation(tmp_path / "evaluation", drawn_records(data, ("Rand",), (0,), 3), data)


def test_an_evaluation_is_recorded_from_the_command_line(evaluation: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    arguments = ["data", "record", "study", str(evaluation), "--data", str(data_dir)]
    recorded = CliRunner().invoke(app, arguments)
    assert recorded.exit_code == 0, recorded.output
    content = pd1_builder.verify("bo_runs/study:1.0.0", data_dir).content_hash
    assert recorded.stdout == f"bo_runs/study:1.0.0: complete, content {content}\n"
    assert CliRunner().invoke(app, arguments).stdout == recorded.stdout


def test_a_folder_that_holds_no_evaluation_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "record", "study", str(tmp_path), "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"hyperbo: {tmp_path}/records.parquet: run records cannot be read")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.rglob("*.parquet")) == []
