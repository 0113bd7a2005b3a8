from __future__ import annotations

import pytest
from hyperbo_flows.cli.main import app
from typer.testing import CliRunner
from version_folders import record, write_version


def records(value=0.5):
    return {"matched": [record("t-1", "a", 0.25, value), record("t-2", "b", 0.5, 0.5)]}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    more = records()
    # A task whose name rich would take for markup.
    more["unmatched"] = [record("t-[bold]", "c")]
    for version, splits in (
        ("1.0.0", records()),
        ("1.0.1", records()),
        ("1.1.0", more),
        ("1.1.1", records(0.25)),
        ("2.0.0", records(0.25)),
    ):
        write_version(folder, f"pd1/mini:{version}", splits)
    write_version(folder, "pd1/release:1.0.0", more)
    return folder


def diff(parent, version, data_dir):
    arguments = ["data", "diff", parent, version, "--data", str(data_dir)]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})


def test_added_records_are_shown_and_the_number_is_right(data_dir):
    result = diff("pd1/mini:1.0.0", "pd1/mini:1.1.0", data_dir)
    assert result.exit_code == 0
    assert result.stdout.startswith("pd1/mini:1.0.0 -> pd1/mini:1.1.0\n")
    (line,) = [line for line in result.stdout.splitlines() if "added to unmatched" in line]
    assert "t-[bold]" in line
    assert "split added" in result.stdout
    assert "the change is minor" in result.stdout


def test_a_changed_value_is_shown_by_task_and_field(data_dir):
    result = diff("pd1/mini:1.0.0", "pd1/mini:2.0.0", data_dir)
    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.splitlines() if "metrics." in line]
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "t-1",
        "metrics.best_valid/error_rate",
        "changed",
        "1",
        "a: 0.5 -> 0.25",
    ]


def test_a_wrong_number_is_an_error_with_exit_code_1(data_dir):
    result = diff("pd1/mini:1.0.0", "pd1/mini:1.1.1", data_dir)
    assert result.exit_code == 1
    assert "changed" in result.stdout
    assert result.stderr.endswith("; use 2.0.0\n")


def test_an_older_version_does_not_follow(data_dir):
    result = diff("pd1/mini:1.1.0", "pd1/mini:1.0.1", data_dir)
    assert result.exit_code == 1
    assert "removed from unmatched" in result.stdout
    assert "version 1.0.1 does not follow its parent 1.1.0" in result.stderr


@pytest.mark.parametrize(
    ("parent", "version", "said"),
    [
        ("pd1/mini:1.0.0", "pd1/mini:1.0.1", "the change is patch"),
        ("pd1/mini:1.0.0", "pd1/mini:1.0.0", "the same version"),
        ("pd1/release:1.0.0", "pd1/mini:1.1.0", "two datasets"),
    ],
)
def test_versions_without_a_difference_say_so(parent, version, said, data_dir):
    result = diff(parent, version, data_dir)
    assert result.exit_code == 0
    assert "no record, field or split changed\n" in result.stdout
    assert said in result.stdout


def test_an_unknown_version_is_one_line_and_exits_with_1(data_dir):
    result = diff("pd1/mini:1.0.0", "pd1/mini:7.0.0", data_dir)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("hyperbo: pd1/mini:7.0.0 is not in ")
