"""Ctrl-C on the real command, as a terminal gives it: to all processes of the command at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

LINE = "interrupted; nothing finished is lost: start the same command again\n"


def started(tmp_path, *arguments):
    """The command, in a process group of its own."""
    command = [sys.executable, "-c", "from hyperbo_flows.cli.main import app; app()", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")},
        start_new_session=True,
    )


def end(process, number):
    """Signal the whole group, and wait for its end: exit code, output, errors."""
    try:
        os.killpg(process.pid, number)
        output, errors = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    with pytest.raises(ProcessLookupError):  # nothing that it started is left
        os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_soon_and_leaves_nothing_half_written(tmp_path, number):
    runs = tmp_path / "runs"
    data = tmp_path / "data"
    process = started(tmp_path, "demo", "--runs", str(runs), "--data", str(data))
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"dataset pd1/mini:1.0.0: not in {data} yet")
    assert process.stdout.readline() == "dataset pd1/mini:1.0.0: building\n"
    code, output, errors = end(process, number)
    assert (code, output) == (128 + number, "")
    assert errors == LINE
    assert {path.name for path in (data / "pd1" / "mini").rglob("*")} <= {".1.0.0.lock"}
    assert not (runs / "prior").exists()


def test_ctrl_c_ends_a_build_with_the_exit_code_of_one(tmp_path):
    process = started(tmp_path, "data", "build", "pd1/mini:1.0.0", "--data", str(tmp_path / "data"))
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob(".1.0.0.lock")) and time.monotonic() < deadline:
        time.sleep(0.02)
    code, output, errors = end(process, signal.SIGINT)
    assert (code, output, errors) == (130, "", LINE)
    assert {path.name for path in (tmp_path / "data" / "pd1" / "mini").rglob("*")} <= {".1.0.0.lock"}
