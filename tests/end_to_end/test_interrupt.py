"""Ctrl-C on the real command, as a terminal gives it: to the command and its embedded server at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


def test_ctrl_c_ends_the_demo_soon_and_leaves_nothing_half_written(tmp_path):
    runs = tmp_path / "runs"
    command = [sys.executable, "-c", "from flows.cli import app; app()", "demo", "--runs", str(runs)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "dataset pd1/mini:1.0.0: building\n"
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert (process.returncode, output, errors) == (130, "", "")
    with pytest.raises(ProcessLookupError):  # the server has ended too
        os.killpg(process.pid, signal.SIGKILL)
    data = runs / "data" / "pd1" / "mini"
    assert {path.name for path in data.rglob("*")} <= {".1.0.0.lock"}
    assert not (runs / "prior").exists()
