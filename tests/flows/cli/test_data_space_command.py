from __future__ import annotations

from pathlib import Path

# Imported here: both keep hold of the stderr that is there when they are, and a command's soon closes.
import apache_beam  # noqa: F401
import tensorflow_datasets  # noqa: F401
from hyperbo_flows.cli.main import app
from hyperbo_pipelines.trials.space_file import read_space_file
from typer.testing import CliRunner

SMAC = "tests/pipelines/histories/recorded/smac"


def hyperbo(*arguments: object):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_a_space_file_is_drafted_on_stdout_or_into_a_new_file(tmp_path: Path) -> None:
    printed = hyperbo("space", SMAC)
    assert printed.exit_code == 0, printed.output
    out = tmp_path / "space.toml"
    assert hyperbo("space", SMAC, "--out", out).stdout == f"written: {out}\n"
    assert out.read_text(encoding="utf-8") == printed.stdout
    assert "momentum" in read_space_file(out).space.names
    again = hyperbo("space", SMAC, "--out", out)
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_a_history_is_added_from_the_command_line(tmp_path: Path) -> None:
    added = hyperbo("add", "own", SMAC, "--objective", "cost", "--direction", "minimize", "--data", tmp_path)
    assert added.exit_code == 0, added.output
    assert added.stdout.startswith("trials/own:1.0.0: complete, content ")
    assert "SMAC 2.4.1: 16 trials of 2 tasks" in added.stderr


def test_a_source_of_no_tool_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    result = hyperbo("add", "own", tmp_path, "--data", tmp_path / "data")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"hyperbo: {tmp_path}: the folder holds no history; give a history of Optuna"
    )
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
