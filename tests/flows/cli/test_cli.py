from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from hyperbo_flows.cli.main import app
from synthetic_pd1 import write_release
from typer.testing import CliRunner

import pd1_builder


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A data folder with pd1/mini:1.0.0 made of synthetic rows; read it only."""
    folder = tmp_path_factory.mktemp("data")
    pd1_builder.build(raw=write_release(tmp_path_factory.mktemp("raw")), data_dir=folder)
    return folder


def hyperbo(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_help_imports_none_of_the_heavy_packages():
    script = """
import sys
sys.argv = ["hyperbo", "--help"]
from hyperbo_flows.cli.main import app
try:
    app()
finally:
    heavy = "jax numpy pandas prefect apache_beam tensorflow_datasets tensorflow matplotlib sklearn".split()
    print("imported:", *(name for name in heavy if name in sys.modules))
"""
    seen = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert seen.stdout.splitlines()[0] == "Usage: hyperbo [OPTIONS] COMMAND [ARGS]..."
    assert seen.stdout.splitlines()[-1] == "imported:"


def test_a_version_is_built_once_then_verified(tmp_path):
    # In processes of its own: Beam and TFDS keep hold of the stderr that was there when they were imported.
    raw, data = write_release(tmp_path / "raw"), tmp_path / "data"
    command = [
        sys.executable,
        "-c",
        "from hyperbo_flows.cli.main import app; app()",
        "data",
        "build",
        "pd1/mini:1.0.0",
    ]
    built, verified = (
        subprocess.run(
            [*command, "--raw", str(raw), "--data", str(data)],
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        )
        for _ in range(2)
    )
    assert built.stdout.startswith("pd1/mini:1.0.0: complete, content ")
    assert verified.stdout == built.stdout
    assert "apitools" not in built.stderr


def test_versions_are_listed_described_and_verified(data_dir):
    content = pd1_builder.verify("pd1/mini:1.0.0", data_dir).content_hash
    listed = hyperbo("data", "list", "--data", data_dir)
    assert listed.stdout == f"pd1/mini:1.0.0  {data_dir / 'pd1' / 'mini' / '1.0.0'}\n"
    described = hyperbo("data", "info", "pd1/mini:1.0.0", "--data", data_dir)
    assert f"content {content}\n" in described.stdout
    assert "digits-mlp-32" in described.stdout
    verified = hyperbo("data", "verify", "pd1/mini:1.0.0", "--data", data_dir)
    assert verified.stdout == f"pd1/mini:1.0.0: verified, content {content}\n"


def test_a_task_may_be_named_like_markup(tmp_path):
    (tmp_path / "trials.csv").write_text("task,rate,loss\nnet[/red],0.5,1\n[bold],0.5,2\n")
    (tmp_path / "space.toml").write_text(
        'objective = "loss"\ndirection = "minimize"\n'
        '[[parameters]]\nname = "rate"\nlower = 0.1\nupper = 1.0\n'
    )
    space = ["--space", tmp_path / "space.toml", "--data", tmp_path]
    added = hyperbo("data", "add", "mine", tmp_path / "trials.csv", *space)
    assert added.exit_code == 0
    assert added.stdout.startswith("trials/mine:1.0.0: complete, content ")
    described = hyperbo("data", "info", "trials/mine", "--data", tmp_path)
    assert "net[/red]" in described.stdout
    assert "[bold]" in described.stdout
    # What the packages below say is shown: here, that there is nothing to add.
    again = hyperbo("data", "add", "mine", tmp_path / "trials.csv", "--data", tmp_path)
    assert "trials/mine:1.0.0 holds these files already; nothing to do" in again.stderr
    # A damaged version of one's own files must not be removed with the only copy of them.
    (tmp_path / "trials/mine/1.0.0/rejects.jsonl").write_text("x")
    damaged = hyperbo("data", "verify", "trials/mine", "--data", tmp_path)
    assert damaged.exit_code == 1
    assert f"copy {tmp_path / 'trials/mine/1.0.0/raw'} elsewhere" in damaged.stderr


def test_the_data_folder_can_be_named_by_a_variable(data_dir, monkeypatch):
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(data_dir))
    assert hyperbo("data", "list").stdout.startswith("pd1/mini:1.0.0  ")


def test_an_empty_data_folder_says_so(tmp_path):
    listed = hyperbo("data", "list", "--data", tmp_path)
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert f"no version in {tmp_path}" in listed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "verify", "pd1/mini:9.9.9"], "hyperbo: pd1/mini:9.9.9 is not in "),
        (["data", "info", "nonsense"], "hyperbo: 'nonsense' is no name of a dataset; write <name>/<config>"),
        (
            ["data", "build", "pd1/nothing"],
            "hyperbo: unknown dataset 'pd1/nothing'; did you mean 'pd1/mini'? use ",
        ),
        (
            ["data", "add", "own", "none.csv", "--space", "none.toml"],
            "hyperbo: none.toml: there is no such space file; draft it: hyperbo data space none.csv ",
        ),
        (["data", "build", "--data", __file__], f"hyperbo: {__file__}: this is a file"),
        (["prior", "info", "nowhere"], "hyperbo: there is no prior 'nowhere', and no such folder"),
        (["report", "nowhere"], "hyperbo: nowhere: there is no such folder; name the folder"),
        (["collect", "--preset", "huge", "--out", "x"], "hyperbo: no preset 'huge'; use mini, "),
        (["evaluate", "nowhere.toml"], "hyperbo: nowhere.toml: "),
        (
            ["evaluate", "--method", "Random"],
            "hyperbo: unknown method 'Random'; did you mean 'Rand'? use Rand, or ",
        ),
        (["evaluate", "--method", "Rand", "--dataset", "pd1/mini"], "hyperbo: dataset 'pd1/mini' names no"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path))
    result = hyperbo(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    # A command that takes long has said what begins.
    assert result.stdout == "" or result.stdout.startswith("dataset pd1/mini:1.0.0: not in ")
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["demo", "--seeds", "0"],
        ["evaluate"],
        ["evaluate", "--protocol", "none", "--method", "Rand"],
        # The file says how many.
        ["evaluate", "experiment.toml", "--iterations", "5"],
        ["study", "nothing"],
        ["report", "one", "two"],
    ],
)
def test_wrong_arguments_exit_with_2(arguments):
    result = hyperbo(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


@pytest.mark.slow
def test_an_interrupted_collection_leaves_no_file_and_exits_with_130(tmp_path):
    # A shell starts background jobs with interrupts ignored; a test run that began so passes that on.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heard}; from hyperbo_flows.cli.main import app; app()"
    command = [sys.executable, "-c", program, "collect", "--preset", "mini"]
    # Not as the tests compile: an interrupt waits for the call that trains, and that would take minutes.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("collect mini: 0 of ")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=180) == 130
    finally:
        process.kill()
        process.communicate()
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, data_dir):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "below"
    result = hyperbo("data", "survey", "pd1/mini:1.0.0", "--data", data_dir, "--out", out)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"hyperbo: {tmp_path / 'file'}")
